"""What `tests/conftest.py` holds every test to. The cases are tests of a pytest run of their own, with this project's
settings: it says which of them it finds fault with."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CASES = '''
import gc, socket, time

import pytest
import tidelog
from kafka import KafkaProducer
from kafka.errors import KafkaError

from tests.support import client_libraries, watchdog
from tests.support.brokers import BrokerProcess, eventually

client_libraries._THREAD_SECONDS = 0.1


def test_leaks_a_socket():
    made = socket.socket()
    del made


def test_leaks_a_socket_in_a_cycle():
    made = [socket.socket()]
    made.append(made)
    del made
    gc.collect()


def test_kafka_python_leaks():
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        for _ in range(3):
            with pytest.raises(KafkaError):
                KafkaProducer(bootstrap_servers="127.0.0.1:%d" % taken.getsockname()[1], bootstrap_timeout_ms=200)
    gc.collect()  # also before its end


def test_after_kafka_python():
    gc.collect()


def compute_for_long():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass


def test_computes_in_this_process():
    with tidelog.embedded() as broker:
        broker._loop.call_soon_threadsafe(compute_for_long)


def test_sleeps_in_this_process():
    with tidelog.embedded() as broker:
        broker._loop.call_soon_threadsafe(time.sleep, 0.5)


PROGRAM = """
import asyncio, runpy, time
from tidelog.gateways.kafka.server import KafkaServer
listen = KafkaServer.listen

def compute_for_long():
    end = time.thread_time() + 0.4
    while time.thread_time() < end:
        pass

async def listen_and_compute(*arguments):
    asyncio.get_running_loop().call_later(0.05, compute_for_long)
    return await listen(*arguments)

KafkaServer.listen = listen_and_compute
runpy.run_path(%r, run_name="__main__")
""" % watchdog.__file__


def test_computes_in_a_process_of_its_own(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with BrokerProcess(tmp_path / "broker", program=("-P", str(tmp_path / "program.py"))) as broker:
        eventually(lambda: watchdog.LINE in broker.log)


@pytest.mark.may_stall(1000, reason="to be mended")
def test_is_allowed_to_compute(tmp_path):
    test_computes_in_a_process_of_its_own(tmp_path)


def test_kafka_python_is_not_closed():
    with tidelog.embedded() as broker:
        made.append(KafkaProducer(bootstrap_servers=broker.bootstrap_servers))


made = []


def test_the_end():
    made.pop().close(timeout=0)
'''


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What pytest says of each case; nothing where it finds no fault."""
    directory = tmp_path_factory.mktemp("cases")
    (directory / "test_cases.py").write_text(CASES)
    options = ["-p", "tests.conftest", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"]
    options += ["-c", str(ROOT / "pyproject.toml"), f"--junitxml={directory}/results.xml"]
    command = [sys.executable, "-m", "pytest", *options, str(directory / "test_cases.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    results = directory / "results.xml"
    assert results.exists(), done.stdout + done.stderr
    found: dict[str, str] = {}
    for case in ET.parse(results).iter("testcase"):
        said = "".join(fault.text or "" for kind in ("failure", "error") for fault in case.iter(kind))
        name = case.attrib["name"].removeprefix("test_")
        found[name] = found.get(name, "") + said
    return found


@pytest.mark.parametrize("case", ["leaks_a_socket", "leaks_a_socket_in_a_cycle"])
def test_a_socket_that_is_not_closed_is_found(faults: dict[str, str], case: str) -> None:
    assert "unclosed <socket.socket" in faults[case]


def test_what_kafka_python_leaks_harms_nobody(faults: dict[str, str]) -> None:
    assert (faults["kafka_python_leaks"], faults["after_kafka_python"]) == ("", "")


def test_a_kafka_python_client_that_is_not_closed_is_found(faults: dict[str, str]) -> None:
    assert "threads of a kafka-python client that was not closed" in faults["kafka_python_is_not_closed"]


@pytest.mark.parametrize("case", ["computes_in_this_process", "computes_in_a_process_of_its_own"])
def test_a_loop_that_computes_for_long_is_found_and_named(faults: dict[str, str], case: str) -> None:
    assert "the event loop was blocked for " in faults[case]
    assert " in compute_for_long (" in faults[case]


def test_a_loop_that_sleeps_or_is_allowed_to_compute_is_not_blamed(faults: dict[str, str]) -> None:
    assert (faults["sleeps_in_this_process"], faults["is_allowed_to_compute"]) == ("", "")
