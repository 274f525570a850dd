"""Kafka's own Java client."""

import os
from pathlib import Path

import pytest

from tests.interop.conftest import CACHE, run, tool
from tests.support.brokers import BrokerProcess

NEWEST = "4.2.0"
OLD = "3.6.2"  # cannot read features whose lowest level is 0
POM = """
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
  <groupId>tidelog</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-clients</artifactId><version>VERSION</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
PARTS = {
    "admin": ["OK admin"],
    "codecs": [f"OK codec {codec}" for codec in ("none", "gzip", "snappy", "lz4", "zstd")],
    "classic": ["OK group classic"],
    "consumer": ["OK group consumer"],
    "transactions": ["OK transactions"],
    "turns": ["OK turns"],
}


def jars_of(version: str) -> str:
    folder = CACHE / f"kafka-clients-{version}"
    if not any(folder.glob("lib/kafka-clients-*.jar")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(POM.replace("VERSION", version))
        run(
            [tool("mvn"), "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'lib'}"],
            cwd=folder,
        )
    return os.pathsep.join(str(jar) for jar in folder.glob("lib/*.jar"))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("version", "part"),
    [*((NEWEST, part) for part in PARTS), *((OLD, part) for part in PARTS if part != "consumer")],
)
def test_the_java_client(broker: BrokerProcess, version: str, part: str) -> None:
    source = Path(__file__).parent / "java" / "Interop.java"
    printed = run([tool("java"), "-cp", jars_of(version), str(source), broker.bootstrap, part])
    assert printed.splitlines() == PARTS[part]
