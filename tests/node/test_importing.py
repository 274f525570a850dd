"""Importing a data directory into a cluster: without brokers, and with a process that ends at any step."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.logs import NOW_MS, stored
from tests.support.transfers import (
    ID,
    Cluster,
    Killed,
    Life,
    batches_in,
    end,
    fill,
    put,
    with_cluster,
    write_directory,
)
from tidelog.broker.producer_ids import NEXT_PRODUCER_ID
from tidelog.errors import InvalidInput
from tidelog.metadata.opening import open_store
from tidelog.metadata.rows import GroupMemberRow, GroupRow, OffsetRow, TopicRow, TransactionRow
from tidelog.metadata.store import Put
from tidelog.model import TopicPartition
from tidelog.node.exporting import ClusterExport
from tidelog.storage.engines import open_cluster_tools
from tidelog.storage.local.log import LocalLog

if TYPE_CHECKING:
    from tidelog.storage.shared.checking import Finding

OPEN = TransactionRow("id", ID, 0, -1, -1, -1, 60_000, "Ongoing", '{"other": [0], "topic": [0]}', "[]", 0, 0)


async def assert_whole(cluster: Cluster, target: Path, directories: dict[str, Path]) -> None:
    """Everything is there, byte for byte, and nothing contradicts itself."""
    await ClusterExport(cluster.settings, str(target), ()).run(lambda _: None)
    for topic, directory in directories.items():
        assert batches_in(target, topic) == batches_in(directory, topic)
    found: list[Finding] = []
    async with open_cluster_tools(cluster.settings, "the cluster") as tools:
        tally = await tools.check((), deep=True, found=found.append, progress=lambda _: None)
    assert not [each for each in found if each.is_error]
    assert tally.logs == len(directories)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_effect", [False, True])
def test_an_import_that_ends_at_any_step_is_completed_by_the_next(tmp_path: Path, with_effect: bool) -> None:
    async def test(cluster: Cluster) -> None:
        directories: dict[str, Path] = {}
        step = 0
        while True:
            step += 1
            topic = f"topic-{step}"
            directories[topic] = tmp_path / topic
            await write_directory(directories[topic], [topic])
            life = Life(step, with_effect=with_effect)
            try:
                await cluster.take_in(directories[topic], life=life)
            except Killed:
                await cluster.take_in(directories[topic])
            else:
                assert life.steps < step, "nothing was left to end at"
                break
        assert step > 15
        groups = {row.group: row for row in await cluster.metadata.load(GroupRow)}
        assert groups.keys() == {f"group of {topic}" for topic in directories}
        assert {(row.state, row.leader) for row in groups.values()} == {("Empty", None)}
        assert all(row.state_since_ms > NOW_MS for row in groups.values()), "their offsets must not expire at once"
        assert await cluster.metadata.load(GroupMemberRow) == []
        offsets = {row.topic: row.offset for row in await cluster.metadata.load(OffsetRow)}
        assert offsets == dict.fromkeys(directories, 4)
        await assert_whole(cluster, tmp_path / "exported", directories)

    with_cluster(tmp_path, test)


def test_what_is_left_of_an_import_is_used_again_or_abandoned(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        directory = tmp_path / "single"
        await write_directory(directory, ["topic"])
        async with cluster.importing(directory) as importing:
            plan, _ = await importing.run((), lambda _: None)
            assert plan.size_bytes > 2048
            assert await importing.abandon(()) == 0, "the topic is there: it is not given up"
        await cluster.logs.abandon([stored("topic").topic.topic_id], 1)  # as if the topic had been deleted
        await write_directory(tmp_path / "other", ["other"])
        for step in (14, 11, 8):
            with pytest.raises(Killed):
                await cluster.take_in(tmp_path / "other", life=Life(step))
        async with open_cluster_tools(cluster.settings, "the cluster") as tools:
            tally = await tools.check((), deep=True, found=lambda _: None, progress=lambda _: None)
        assert tally.errors == 0
        async with cluster.importing(tmp_path / "other") as importing:
            assert await importing.abandon(()) > 0
            assert await importing.abandon(()) == 0
        await cluster.take_in(tmp_path / "other")  # under new keys: the first ones are dead
        assert [row.name for row in await cluster.metadata.load(TopicRow)] == ["topic", "other"]
        with pytest.raises(InvalidInput, match="the cluster has topic already, with nothing of partition 0"):
            await cluster.take_in(directory)

    with_cluster(tmp_path, test)


def test_the_search_for_orphans_leaves_an_unfinished_import_alone(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        directory = tmp_path / "single"
        await write_directory(directory, ["topic"])
        with pytest.raises(Killed):
            await cluster.take_in(directory, life=Life(14, with_effect=True))  # before the third segment is staged
        uploaded = sorted(path for path in (tmp_path / "objects" / "s").rglob("*") if path.is_file())
        assert len(uploaded) == 3
        for path in uploaded:
            os.utime(path, (0, 0))
        impatient = replace(cluster.settings, orphan_age_ms=1_000, append_timeout_ms=1_000, garbage_grace_ms=1_000)
        async with open_cluster_tools(impatient, "the cluster") as tools:
            collected = await tools.collect(dry_run=False)
            assert collected.declared_dead.objects == 1, "that which was not staged"
        async with cluster.importing(directory) as importing:
            await importing.run((), lambda _: None)
        stored_now = {path for path in (tmp_path / "objects" / "s").rglob("*") if path.is_file()}
        segments = [path for path in directory.rglob("*.log") if path.stat().st_size]
        assert len(stored_now) == len(segments) + 1, "the dead one was uploaded again, under another key"
        await assert_whole(cluster, tmp_path / "exported", {"topic": directory})

    with_cluster(tmp_path, test)


def test_producer_ids_of_the_cluster_and_of_the_directory_are_never_confused(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        assert await cluster.metadata.reserve(NEXT_PRODUCER_ID, 5) == 0  # the cluster has given 0 to 4 to others
        await write_directory(tmp_path / "one", ["one", "two"])
        async with cluster.importing(tmp_path / "one") as importing:
            assert (await importing.plan(["one"])).forgotten_producers == 1
        await cluster.take_in(tmp_path / "one", "one")
        assert await cluster.metadata.reserve(NEXT_PRODUCER_ID, 1) == 1000, "those of the directory are skipped"
        await cluster.take_in(tmp_path / "one", "two")
        state = await ClusterExport(cluster.settings, str(tmp_path / "x"), ()).state()
        for log in state.logs:
            assert log.known.snapshot is not None
            assert len(log.known.snapshot.facts) > 0
        await ClusterExport(cluster.settings, str(tmp_path / "back"), ()).run(lambda _: None)
        metadata = await open_store(str(tmp_path / "back"))
        try:
            assert await metadata.reserve(NEXT_PRODUCER_ID, 1) == 1001
        finally:
            await metadata.close()

        def opened(log: LocalLog) -> None:
            put(log, b"open", producer_id=ID, producer_epoch=0, sequence=0, transactional=True)

        await write_directory(tmp_path / "open", ["open"], {"open": opened})
        with pytest.raises(InvalidInput, match=r"open-0 has an open transaction of producer 3, .* abort --partition"):
            await cluster.take_in(tmp_path / "open")

    with_cluster(tmp_path, test)


def test_an_open_transaction_moves_with_all_its_topics_or_not_at_all(tmp_path: Path) -> None:
    def opened(log: LocalLog) -> None:
        put(log, b"before")
        put(log, b"open", producer_id=ID, producer_epoch=0, sequence=0, transactional=True)

    async def test(cluster: Cluster) -> None:
        directory = tmp_path / "single"
        await write_directory(directory, ["topic", "other"], {"topic": opened, "other": opened})
        metadata = await open_store(str(directory))
        await metadata.write([Put(OPEN)])
        await metadata.close()
        with pytest.raises(InvalidInput, match=r"'id' is open: it also involves other, .* tidelog txn abort id"):
            await cluster.take_in(directory, "topic")
        await cluster.take_in(directory)
        assert await cluster.metadata.load(TransactionRow) == [OPEN]
        state = await ClusterExport(cluster.settings, str(tmp_path / "x"), ()).state()
        assert [log.known.high_watermark for log in state.logs] == [2, 2]
        with pytest.raises(InvalidInput, match="'id' is open, and also involves other: export these too"):
            await ClusterExport(cluster.settings, str(tmp_path / "x"), ["topic"]).state()
        await ClusterExport(cluster.settings, str(tmp_path / "back"), ()).run(lambda _: None)
        back = await open_store(str(tmp_path / "back"))
        try:
            assert await back.load(TransactionRow) == [OPEN]
        finally:
            await back.close()

    with_cluster(tmp_path, test)


def test_a_directory_that_went_on_after_a_half_import_is_refused(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        directory = tmp_path / "single"
        await write_directory(directory, ["topic"])
        whole = Life()
        await write_directory(tmp_path / "measured", ["measured"])
        await cluster.take_in(tmp_path / "measured", life=whole)
        with pytest.raises(Killed):
            await cluster.take_in(directory, life=Life(whole.steps))  # all but the last step
        async with cluster.importing(directory) as importing:
            log = importing._storage._open(stored("topic"))
            put(log, b"more")
            log.close()
            importing._storage._local.release([stored("topic")])
            with pytest.raises(InvalidInput, match="has changed since: run the command with --abandon first"):
                await importing.plan(())
            assert await importing.abandon(()) == 1
        await cluster.take_in(directory)
        await assert_whole(cluster, tmp_path / "exported", {"topic": directory, "measured": tmp_path / "measured"})

    with_cluster(tmp_path, test)


def test_logs_with_gaps_moved_starts_and_without_records_survive_both_ways(tmp_path: Path) -> None:
    def started_later(log: LocalLog) -> None:
        fill(log)
        log.delete_before(6)
        log.flush()

    def emptied(log: LocalLog) -> None:
        fill(log)
        log.delete_before(log.end_offset)
        log.flush()

    def across(log: LocalLog) -> None:
        """A transaction that begins in one segment and is aborted in another."""
        put(log, b"x" * 900, producer_id=ID, producer_epoch=0, sequence=0, transactional=True)
        for number in range(4):
            put(log, b"%d" % number * 400)
        end(log, committed=False)

    contents = {"started-later": started_later, "emptied": emptied, "across": across, "never": lambda _: None}

    async def test(cluster: Cluster) -> None:
        directory = tmp_path / "single"
        await write_directory(directory, contents, contents)
        await cluster.take_in(directory)
        state = await ClusterExport(cluster.settings, str(tmp_path / "x"), ()).state()
        offsets = {log.partition.name: (log.known.start_offset, log.known.high_watermark) for log in state.logs}
        assert offsets == {
            TopicPartition("across", 0): (0, 6),
            TopicPartition("emptied", 0): (15, 15),
            TopicPartition("never", 0): (0, 0),
            TopicPartition("started-later", 0): (6, 15),
        }
        (across_log,) = (log for log in state.logs if log.partition.name.topic == "across")
        assert [(one.first_offset, one.last_offset) for one in across_log.known.aborted] == [(0, 5)]
        await assert_whole(cluster, tmp_path / "exported", dict.fromkeys(contents, directory))
        async with cluster.importing(tmp_path / "exported") as importing:
            plan = await importing.plan(())
            assert all(topic.is_there for topic in plan.topics)
            looked = {log.partition.name: (log.start_offset, log.end_offset) for t in plan.topics for log in t.logs}
            assert looked == offsets

    with_cluster(tmp_path, test)
