"""kcat, the command that everybody has at hand."""

import shutil
import subprocess

import pytest

from tests.e2e.conftest import MakeTopic
from tests.support.brokers import BrokerProcess

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian: apt install kcat)")


def kcat(broker: BrokerProcess, *arguments: str, send: str = "") -> str:
    command = [KCAT or "", "-b", broker.bootstrap, *arguments]
    done = subprocess.run(command, input=send, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_it_produces_and_consumes(broker: BrokerProcess, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    lines = "".join(f"key {number}:value {number}\n" for number in range(100))
    kcat(broker, "-P", "-t", topic, "-K", ":", "-z", codec, send=lines)
    assert kcat(broker, "-C", "-t", topic, "-K", ":", "-e", "-q") == lines
    assert kcat(broker, "-C", "-t", topic, "-o", "-1", "-e", "-q") == "value 99\n"


def test_it_lists_topics(broker: BrokerProcess, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    listed = kcat(broker, "-L", "-t", topic)
    assert f'topic "{topic}" with 3 partitions' in listed
    assert topic in kcat(broker, "-L")
