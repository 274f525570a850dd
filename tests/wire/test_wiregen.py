"""The compact form, and that the generated modules are what it makes."""

import json
from pathlib import Path

import pytest

from tools.wiregen.import_facts import api_text
from tools.wiregen.modules import GENERATED, generate
from tools.wiregen.schema import BadSchema, Versions, parse

TEXT = """\
api 7 Sample
versions 1-4
flexible 3+

request
  name: string
  groups: []Group?, 2+, ignorable, = null
    member: string, nullable 3+
    epoch: int32, 2-3, = -1

response
  leader: Leader, 3+, tag 0
    id: int32
"""


def test_regenerating_gives_exactly_what_is_checked_in(tmp_path: Path) -> None:
    generate(tmp_path)
    made = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    checked_in = {path.name: path.read_text() for path in GENERATED.glob("*.py")}
    assert made.keys() == checked_in.keys()
    assert [name for name in made if made[name] != checked_in[name]] == []


def test_the_compact_form_is_read() -> None:
    sample = parse(TEXT)
    assert (sample.name, sample.api_key, sample.versions, sample.flexible) == (
        "Sample",
        7,
        Versions(1, 4),
        Versions(3, 4),
    )
    assert list(sample.structs) == ["SampleRequest", "Group", "SampleResponse", "Leader"]
    name, groups = sample.structs["SampleRequest"].fields
    assert (name.versions, name.nullable.empty, name.ignorable) == (Versions(1, 4), True, False)
    assert (groups.is_array, groups.type, groups.versions, groups.nullable) == (
        True,
        "Group",
        Versions(2, 4),
        Versions(2, 4),
    )
    assert (groups.ignorable, groups.default) == (True, "null")
    member, epoch = sample.structs["Group"].fields
    assert (member.versions, member.nullable) == (Versions(2, 4), Versions(3, 4))
    assert (epoch.versions, epoch.default) == (Versions(2, 3), "-1")
    assert sample.structs["SampleResponse"].fields[0].tag == 0
    assert sample.versions_of(sample.messages[0], "Group") == [2, 3, 4]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: string", "name string"),
        ("  name: string", "  name: string\n    inner: int32"),
        ("[]Group?", "[]Leader?"),
        ("name: string", "class: string"),
        ("2-3", "x"),
        ("response", "struct Group\n  a: int8\n\nresponse"),
    ],
)
def test_what_is_not_the_compact_form_is_refused(old: str, new: str) -> None:
    with pytest.raises(BadSchema):
        parse(TEXT.replace(old, new, 1))


def test_kafkas_own_form_is_turned_into_ours() -> None:
    request = {
        "apiKey": 7, "name": "SampleRequest", "validVersions": "1-4", "flexibleVersions": "3+",
        "fields": [
            {"name": "Name", "type": "string", "versions": "0+"},
            {"name": "Groups", "type": "[]Group", "versions": "2+", "nullableVersions": "2+", "default": "null",
             "ignorable": True,
             "fields": [
                {"name": "Member", "type": "string", "versions": "0+", "nullableVersions": "3+"},
                {"name": "Epoch", "type": "int32", "versions": "2-3", "default": "-1"},
             ]},
        ],
    }  # fmt: skip
    leader = {"name": "Leader", "type": "Leader", "versions": "3+", "taggedVersions": "3+", "tag": 0,
              "fields": [{"name": "Id", "type": "int32", "versions": "3+"}]}  # fmt: skip
    response = json.loads(json.dumps(request)) | {"name": "SampleResponse", "fields": [leader]}
    assert api_text(request, response) == TEXT
