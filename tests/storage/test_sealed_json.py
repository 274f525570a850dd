"""Small JSON files that tell whether they are whole."""

import pytest

from tidelog.storage.local.sealed_json import as_json, seal, unseal


def test_what_was_sealed_comes_back_without_its_version() -> None:
    content = seal(as_json({"version": 3, "a": [1, 2], "b": None}).encode())
    assert content == b'{"version":3,"a":[1,2],"b":null}\n7b68de73\n'
    assert unseal(content, 3) == {"a": [1, 2], "b": None}
    assert unseal(content, 2) is None


def test_any_byte_that_changes_or_is_missing_is_found() -> None:
    content = seal(b'{"version":1,"a":12}')
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        assert unseal(bytes(changed), 1) is None, position
        assert unseal(content[:position], 1) is None, position
    assert unseal(content + b"x", 1) is None


@pytest.mark.parametrize("line", [b"[]", b"1", b"null", b"{", b"", b"{}", b"\xff"])
def test_what_is_no_object_with_a_version_is_refused(line: bytes) -> None:
    assert unseal(seal(line), 1) is None
