"""Many clients of four libraries and three brokers over a PostgreSQL and an object store, all of which fail in many
ways; an operator that changes the topics; and a check of everything afterwards.

STORE=s3 python -m tests.torture.cluster [--seconds 600] [--seed N]     objects are in a directory without STORE=s3
"""

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.support.brokers import BrokerProcess, unique
from tests.support.faulty_proxy import FaultyProxy
from tests.support.object_server import BUCKET, ObjectServer
from tests.support.orders import assert_consistent, connected
from tests.support.postgres import PostgresServer
from tests.support.stepping_clock import StepClock
from tests.torture.checker import check
from tests.torture.clients import COMMON
from tests.torture.cluster_nemeses import BROKERS, Nemeses, Target
from tests.torture.crew import SETTINGS, TOPICS, Crew, Result, complaints, new_history
from tests.torture.history import now
from tests.torture.operator import COMPACTED, GROWN, PARTITIONS, TRIMMED, Operator
from tidelog.postgres import PostgresSettings
from tidelog.storage.shared import bundle, segment_object
from tidelog.storage.shared.object_stores.opening import open_object_store
from tidelog.storage.shared.objects import ObjectStore

SPARE_BROKERS = 2
RECOVERY_SECONDS = 30.0
_PROBE = "probe"  # a topic that is written only after the last fault
_PATIENCE_SECONDS = 180.0  # after which the run is a failure, even if the machine is slow
_STOP_SECONDS = 60.0
# What happens in hours otherwise. Objects are kept for longer than a broker is paused.
_UPKEEP = {
    "cluster.merge-interval-ms": "1000",
    "cluster.garbage-interval-ms": "2000",
    "cluster.garbage-grace-ms": "45000",
    "cluster.orphan-interval-ms": "5000",
    "cluster.orphan-age-ms": "45000",
}


def torture(
    directory: Path,
    seconds: float,
    seed: int,
    passed: Callable[[int], object] = bool,
    *,
    on_s3: bool = False,
    calm: float = 1.0,
    recovery_seconds: float = RECOVERY_SECONDS,
) -> Result:
    """`calm`: see `Nemeses`. `recovery_seconds`: everything must serve again so long after the last fault."""
    history = new_history()
    with contextlib.ExitStack() as stack:
        target = _target(stack, directory, seed, on_s3)
        running = target.brokers[:BROKERS]
        for broker in running:
            broker.start()
        bootstrap = target.bootstrap
        operator = Operator("operator", bootstrap, history, seed)
        operator.create_topics(*TOPICS, _PROBE)
        crew = Crew(bootstrap, history, seed, operator)
        stack.callback(crew.kill)
        target.clients = crew.apart
        nemeses = Nemeses(target, seed, calm)
        crew.start()
        nemeses.run(seconds, passed)
        errors = nemeses.errors
        recovered = _until_everything_serves(bootstrap)
        print(f"everything served again after {recovered:.1f} s", flush=True)
        if recovered > recovery_seconds:
            errors.append(f"it took {recovered:.1f} s until everything served again")
        errors += crew.end(bootstrap)
        errors += _damage(target)
        for broker in target.brokers:
            if broker.is_running:
                broker.stop(_STOP_SECONDS)
            errors += complaints(broker.log)
        for proxy in (target.database, target.store):
            if proxy is not None:
                nemeses.troubles.update(proxy.met)
    return Result(history, check(history), nemeses.troubles, errors, crew.deaths)


def _target(stack: contextlib.ExitStack, directory: Path, seed: int, on_s3: bool) -> Target:
    directory.mkdir(parents=True, exist_ok=True)
    postgres = PostgresServer()
    stack.callback(postgres.close)
    database = stack.enter_context(FaultyProxy(postgres.port, seed))
    environment = {"TIDELOG_CLUSTER_METADATA": postgres.url(port=database.port)}
    storage, store = f"file://{directory}/objects", None
    options: dict[str, str] = {}
    if on_s3:
        objects = stack.enter_context(ObjectServer(directory / "s3"))
        port = int(objects.endpoint.rpartition(":")[2])
        store = stack.enter_context(FaultyProxy(port, seed + 1, http=True))
        options = objects.options
        storage = f"s3://{BUCKET}/torture"
        environment |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": objects.access_key_id,
            "AWS_SECRET_ACCESS_KEY": objects.secret_access_key,
        }
    brokers, clocks = [], []
    for number in range(1, BROKERS + SPARE_BROKERS + 1):
        clock = StepClock(directory / f"clock-{number}")
        settings = {**SETTINGS, **_UPKEEP, "cluster.storage": storage, "node-id": str(number)}
        broker = BrokerProcess(directory / f"broker-{number}", settings, program=clock.program)
        broker.environment |= environment | clock.environment
        stack.callback(broker.end)
        brokers.append(broker)
        clocks.append(clock)
    return Target(brokers, clocks, postgres, database, store, open_object_store(storage, options), ())


def _damage(target: Target) -> list[str]:
    """What is wrong with the tables of logs, and which objects are missing. Topics may still be being deleted: it is
    looked at again for a while."""
    settings = PostgresSettings.parse(target.postgres.url())
    deadline = now() + _PATIENCE_SECONDS
    while True:
        try:
            asyncio.run(_check_tables(settings, target.objects))
        except AssertionError as error:
            if now() > deadline:
                return [str(error)]
            time.sleep(1)
        else:
            return []


async def _check_tables(settings: PostgresSettings, objects: ObjectStore) -> None:
    connection = await connected(settings)
    try:
        await assert_consistent(connection, is_compacted=True)
        rows = await connection.fetch("SELECT DISTINCT key FROM extents JOIN objects USING (object_id)")
        prefixes = (bundle.PREFIX, segment_object.PREFIX)
        stored = {each.key for prefix in prefixes async for each in objects.list(prefix)}
        missing = {row["key"] for row in rows} - stored
        rows = await connection.fetch("SELECT key FROM extents JOIN objects USING (object_id)")  # without merged ones
        assert not missing & {row["key"] for row in rows}, f"objects are missing: {sorted(missing)}"
    finally:
        await connection.close()


def _until_everything_serves(bootstrap: str) -> float:
    """The seconds until all leaders answer, a transaction over several leaders succeeds, and a group commits."""
    began = now()
    for probe in (_every_leader_answers, _a_transaction_succeeds, _a_group_commits):
        while True:
            try:
                probe(bootstrap)
                break
            except KafkaException as error:
                if now() - began > _PATIENCE_SECONDS:
                    raise AssertionError(
                        f"{probe.__name__.strip('_')} is not true after {now() - began:.0f} s"
                    ) from error
    return now() - began


def _every_leader_answers(bootstrap: str) -> None:
    consumer = _consumer(bootstrap)
    try:
        for topic in (*TOPICS, _PROBE, GROWN, TRIMMED, COMPACTED):
            for number in range(PARTITIONS):
                consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=5, cached=False)
    finally:
        consumer.close()


def _a_transaction_succeeds(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **COMMON, "transactional.id": unique(_PROBE)})
    producer.init_transactions(10)
    producer.begin_transaction()
    for number in range(PARTITIONS):
        producer.produce(_PROBE, b"value", partition=number)
    producer.commit_transaction(20)


def _a_group_commits(bootstrap: str) -> None:
    consumer = _consumer(bootstrap)
    try:
        consumer.commit(offsets=[TopicPartition(_PROBE, 0, 1)], asynchronous=False)
    finally:
        consumer.close()


def _consumer(bootstrap: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, **COMMON, "group.id": _PROBE, "enable.auto.commit": False})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("TORTURE_SECONDS", "600")))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--calm", type=float, default=1.0, help="multiplies the pauses between faults")
    parser.add_argument("--keep", action="store_true", help="keep logs, objects and history of a good run, too")
    options = parser.parse_args()
    on_s3 = os.environ.get("STORE") == "s3"
    print(f"seed {options.seed}, {options.seconds:.0f} s, objects in {'S3' if on_s3 else 'a directory'}", flush=True)
    directory = tempfile.mkdtemp(prefix="tidelog-torture-")
    with click.progressbar(length=round(options.seconds), label="making trouble") as bar:
        result = torture(
            Path(directory) / unique("run"),
            options.seconds,
            options.seed,
            bar.update,
            on_s3=on_s3,
            calm=options.calm,
        )
    is_bad = bool(result.findings or result.errors)
    if options.keep or is_bad:
        result.history.save(Path(directory) / "history.pickle")
        print(f"logs, objects and history are in {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)
    for line in result.lines():
        print(line)
    sys.exit(1 if is_bad else 0)


if __name__ == "__main__":
    main()
