"""The table of APIs, and that starting up does not load them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidelog
from tests.wire.random_messages import DEFINITIONS
from tidelog.wire.apis import APIS, BY_NAME, UNUSED
from tidelog.wire.error_codes import NAMES, RETRIABLE, ErrorCode, name_of

SOURCES = Path(tidelog.__file__).parent
GENERATED = SOURCES / "wire" / "generated"


def test_the_table_has_the_ranges_of_kafka_4_2() -> None:
    ranges = {
        name: (api.key, api.min_version, api.max_version, api.first_flexible_version) for name, api in BY_NAME.items()
    }
    assert ranges["Produce"] == (0, 3, 13, 9)
    assert ranges["Fetch"] == (1, 4, 18, 12)
    assert ranges["Metadata"] == (3, 0, 13, 9)
    assert ranges["ApiVersions"] == (18, 0, 4, 3)
    assert ranges["SaslHandshake"] == (17, 0, 1, None)
    assert ranges["ConsumerGroupHeartbeat"] == (68, 0, 1, 0)
    assert len([key for key in APIS if key < 10_000]) == 62


def test_every_message_in_the_table_is_used_by_the_broker_or_the_client() -> None:
    generated = {path.stem for path in GENERATED.glob("*.py")} - {"__init__", "table"}
    used = set()
    for path in SOURCES.rglob("*.py"):
        if path.parent != GENERATED:
            for module, names in re.findall(r"wire\.generated(?:\.(\w+)| import (\([^)]*\)|.*))", path.read_text()):
                used |= {module, *re.findall(r"\w+", names)}
    assert generated - used == set()
    assert not set(UNUSED) & set(APIS)


def test_our_own_apis_stand_far_from_those_of_kafka() -> None:
    assert {api.name: api.key for api in APIS.values() if api.key >= 100} == {
        "TableGet": 10_000,
        "TableDescribe": 10_001,
        "DecideTransactions": 10_002,
        "DescribeDecision": 10_003,
        "DescribeMemory": 10_004,
        "DrainBrokers": 10_005,
        "LocateRecords": 10_006,
        "StoreTransactionOffsets": 10_007,
        "TransactionEnded": 10_008,
    }


def test_each_api_has_codecs_of_its_versions() -> None:
    for api in APIS.values():
        for codec in (api.request, api.response):
            assert (codec.min_version, codec.max_version) == (api.min_version, api.max_version)
        assert api.request.name == f"{api.name}Request"


def test_header_versions_follow_the_first_flexible_version() -> None:
    fetch, api_versions, handshake = BY_NAME["Fetch"], BY_NAME["ApiVersions"], BY_NAME["SaslHandshake"]
    assert [fetch.response_header_version(version) for version in (11, 12)] == [0, 1]
    assert [api_versions.response_header_version(version) for version in (2, 3, 4)] == [0, 0, 0]
    assert handshake.response_header_version(1) == 0


def test_importing_the_table_loads_no_api() -> None:
    script = (
        "import json, sys, tidelog.wire.envelope, tidelog.wire.framing; from tidelog.wire.apis import BY_NAME;"
        "before = [m for m in sys.modules if '.generated.' in m]; BY_NAME['Heartbeat'].request;"
        "after = [m for m in sys.modules if '.generated.' in m]; print(json.dumps([before, after]))"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout
    before, after = json.loads(output)
    assert before == ["tidelog.wire.generated.table"]
    assert after == [*before, "tidelog.wire.generated.heartbeat"]


def test_error_codes_are_those_of_kafka() -> None:
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER == 6
    assert ErrorCode.UNSUPPORTED_VERSION == 35
    assert sorted(NAMES) == list(range(-1, 134))
    assert ErrorCode.NOT_COORDINATOR in RETRIABLE
    assert ErrorCode.OFFSET_OUT_OF_RANGE not in RETRIABLE
    assert len(RETRIABLE) == 32
    assert (name_of(0), name_of(3), name_of(9999)) == ("NONE", "UNKNOWN_TOPIC_OR_PARTITION", "ERROR_9999")


def test_error_codes_agree_with_kio() -> None:
    errors: Any = pytest.importorskip("kio.schema.errors")
    theirs = {error.value: (error.name.upper(), error.retriable) for error in errors.ErrorCode}
    assert {code: (name, code in RETRIABLE) for code, name in NAMES.items() if code in theirs} == theirs


def test_the_table_is_that_of_the_definitions() -> None:
    keys = {definition.api_key for definition in DEFINITIONS.values() if definition.api_key is not None}
    assert keys == set(APIS)
