"""`PostgresRegistry`: the registry in PostgreSQL. docs/formats/registry.md describes the tables.

Each call is one statement, most of them a call of a function below, so a broker that is paused never holds a lock.
Locks are taken in this order: rows of `brokers`, of `leases` (by scope), of `logs` (by log_id, as the storage engine
does), then the row of `registry`, which makes versions visible in order: whoever sees a version sees all changes up to
it.

The leaders are columns of the storage engine's table `logs`. All that ties the two together is here: the script
`_LOGS`, which adds a column and triggers to that table, the two functions that change leaders (`registry_register` and
`registry_assign`), and `_LEADERSHIPS`, which reads them. Whoever inserts or deletes logs or changes leaders, the
triggers count the version up.

A beat is not synced to disk: nobody relies on it after a crash.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidelog.errors import Fenced
from tidelog.metadata.postgres.tables import METADATA
from tidelog.metadata.registry import (
    CONTROLLER,
    DEAD_AFTER_S,
    Address,
    Beat,
    Changes,
    Leadership,
    Lease,
    Membership,
    Registry,
    UnknownBroker,
)
from tidelog.metadata.store import Fence
from tidelog.postgres import Component, Connection, PostgresSettings, Session

DELETIONS_KEPT = 10_000  # versions
_PAGE = 2_000  # leaderships that are read at once, so that the event loop is not blocked
_BEAT_DEADLINE_S = 3.0

_TABLES = """
CREATE TABLE registry (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), version bigint NOT NULL);
INSERT INTO registry (version) VALUES (0);
CREATE TABLE brokers (
    broker_id       integer PRIMARY KEY,
    incarnation     text NOT NULL,
    addresses       text NOT NULL,
    rack            text,
    is_draining     boolean NOT NULL,
    beat            timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE deleted_topics (version bigint NOT NULL, topic_id bytea NOT NULL, PRIMARY KEY (version, topic_id));
"""

_LOGS = (
    """
ALTER TABLE logs ADD COLUMN version bigint NOT NULL DEFAULT 0;
-- Commits change neither of the two, so they stay HOT.
CREATE INDEX logs_version ON logs (version, log_id);

CREATE FUNCTION registry_count_logs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tidelog.version', registry_count()::text, true);
    RETURN NULL;
END $$;
CREATE FUNCTION registry_stamp_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.version := current_setting('tidelog.version')::bigint;
    RETURN NEW;
END $$;
CREATE FUNCTION registry_note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_topics (version, topic_id)
    SELECT DISTINCT current_setting('tidelog.version')::bigint, topic_id FROM gone;
    DELETE FROM deleted_topics WHERE version <= current_setting('tidelog.version')::bigint - %d;
    RETURN NULL;
END $$;
CREATE TRIGGER registry_count BEFORE INSERT OR DELETE OR UPDATE OF leader, leader_epoch ON logs
FOR EACH STATEMENT EXECUTE FUNCTION registry_count_logs();
CREATE TRIGGER registry_stamp BEFORE INSERT OR UPDATE OF leader, leader_epoch ON logs
FOR EACH ROW EXECUTE FUNCTION registry_stamp_log();
CREATE TRIGGER registry_deleted AFTER DELETE ON logs REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION registry_note_deleted();
"""
    % DELETIONS_KEPT
)

_FUNCTIONS = """
CREATE OR REPLACE FUNCTION registry_count() RETURNS bigint LANGUAGE sql AS $$
    UPDATE registry SET version = version + 1 RETURNING version
$$;

CREATE OR REPLACE FUNCTION registry_is_live(p_beat timestamptz, p_dead_after double precision)
RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT abs(extract(epoch FROM clock_timestamp() - p_beat)) <= p_dead_after
$$;

-- False: another broker is up with this id.
CREATE OR REPLACE FUNCTION registry_register(
    p_broker integer, p_incarnation text, p_addresses text, p_rack text, p_draining boolean,
    p_dead_after double precision
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_known brokers;
BEGIN
    INSERT INTO brokers (broker_id, incarnation, addresses, rack, is_draining, beat)
    VALUES (p_broker, '', '{}', p_rack, p_draining, 'epoch') ON CONFLICT (broker_id) DO NOTHING;
    SELECT * INTO v_known FROM brokers WHERE broker_id = p_broker FOR NO KEY UPDATE;
    IF v_known.incarnation <> p_incarnation AND registry_is_live(v_known.beat, p_dead_after)
        AND (v_known.addresses <> p_addresses OR p_addresses = '{}')
    THEN
        RETURN false;
    END IF;
    UPDATE brokers SET incarnation = p_incarnation, addresses = p_addresses, rack = p_rack,
        is_draining = p_draining, beat = clock_timestamp()
    WHERE broker_id = p_broker;
    IF v_known.incarnation <> p_incarnation THEN
        PERFORM FROM leases WHERE broker_id = p_broker ORDER BY scope FOR NO KEY UPDATE;
        UPDATE leases SET epoch = epoch + 1 WHERE broker_id = p_broker;
        PERFORM FROM logs WHERE leader = p_broker ORDER BY log_id FOR NO KEY UPDATE;
        UPDATE logs SET leader_epoch = leader_epoch + 1, epoch_start = high_watermark WHERE leader = p_broker;
    END IF;
    PERFORM registry_count();
    RETURN true;
END $$;

-- The version is NULL if this incarnation is not registered.
CREATE OR REPLACE FUNCTION registry_beat(
    p_broker integer, p_incarnation text, p_dead_after double precision,
    OUT version bigint, OUT now double precision, OUT has_controller boolean
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE brokers SET beat = clock_timestamp() WHERE broker_id = p_broker AND incarnation = p_incarnation;
    IF FOUND THEN
        SELECT registry.version, extract(epoch FROM clock_timestamp()), EXISTS (
            SELECT FROM leases JOIN brokers ON brokers.broker_id = leases.broker_id
            WHERE leases.scope = 'controller' AND registry_is_live(brokers.beat, p_dead_after)
        ) INTO version, now, has_controller FROM registry;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION registry_leave(p_broker integer, p_incarnation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM brokers WHERE broker_id = p_broker AND incarnation = p_incarnation;
    IF FOUND THEN
        PERFORM registry_count();
    END IF;
END $$;

-- False: it is not registered.
CREATE OR REPLACE FUNCTION registry_drain(p_broker integer, p_draining boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_draining boolean;
BEGIN
    SELECT is_draining INTO v_draining FROM brokers WHERE broker_id = p_broker FOR NO KEY UPDATE;
    IF v_draining <> p_draining THEN
        UPDATE brokers SET is_draining = p_draining WHERE broker_id = p_broker;
        PERFORM registry_count();
    END IF;
    RETURN v_draining IS NOT NULL;
END $$;

-- The epoch; 0: another broker is the controller; NULL: this incarnation is not registered.
CREATE OR REPLACE FUNCTION registry_stand(p_broker integer, p_incarnation text, p_dead_after double precision)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_owner integer;
    v_epoch bigint;
BEGIN
    INSERT INTO leases (scope, broker_id, epoch) VALUES ('controller', -1, 0) ON CONFLICT (scope) DO NOTHING;
    SELECT broker_id, epoch INTO v_owner, v_epoch FROM leases WHERE scope = 'controller' FOR NO KEY UPDATE;
    IF NOT EXISTS (SELECT FROM brokers WHERE broker_id = p_broker AND incarnation = p_incarnation) THEN
        RETURN NULL;
    ELSIF v_owner = p_broker THEN
        RETURN v_epoch;
    ELSIF EXISTS (SELECT FROM brokers WHERE broker_id = v_owner AND registry_is_live(beat, p_dead_after)) THEN
        RETURN 0;
    END IF;
    UPDATE leases SET broker_id = p_broker, epoch = epoch + 1 WHERE scope = 'controller';
    PERFORM registry_count();
    RETURN v_epoch + 1;
END $$;

-- NULL: another broker is the controller.
CREATE OR REPLACE FUNCTION registry_bury(p_epoch bigint, p_dead_after double precision)
RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    v_owner integer;
    v_dead integer[];
BEGIN
    SELECT broker_id INTO v_owner FROM leases WHERE scope = 'controller' AND epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    WITH dead AS (
        DELETE FROM brokers WHERE broker_id <> v_owner AND NOT registry_is_live(beat, p_dead_after)
        RETURNING broker_id
    )
    SELECT coalesce(array_agg(broker_id ORDER BY broker_id), '{}') INTO v_dead FROM dead;
    IF v_dead <> '{}' THEN
        PERFORM registry_count();
    END IF;
    RETURN v_dead;
END $$;

-- False: another broker is the controller.
CREATE OR REPLACE FUNCTION registry_assign(
    p_epoch bigint, p_scopes text[], p_owners integer[], p_topics bytea[], p_partitions integer[], p_leaders integer[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM leases WHERE scope = 'controller' OR scope = ANY (p_scopes) ORDER BY scope FOR NO KEY UPDATE;
    IF NOT EXISTS (SELECT FROM leases WHERE scope = 'controller' AND epoch = p_epoch) THEN
        RETURN false;
    END IF;
    INSERT INTO leases AS held (scope, broker_id, epoch)
    SELECT scope, broker_id, 1 FROM unnest(p_scopes, p_owners) AS given (scope, broker_id) ORDER BY scope
    ON CONFLICT (scope) DO UPDATE SET broker_id = excluded.broker_id, epoch = held.epoch + 1
    WHERE held.broker_id <> excluded.broker_id;
    IF p_topics <> '{}' THEN
        PERFORM FROM logs JOIN unnest(p_topics, p_partitions) AS given (topic_id, partition)
            ON logs.topic_id = given.topic_id AND logs.partition = given.partition
        ORDER BY logs.log_id FOR NO KEY UPDATE OF logs;
        UPDATE logs SET leader = given.leader, leader_epoch = logs.leader_epoch + 1, epoch_start = logs.high_watermark
        FROM unnest(p_topics, p_partitions, p_leaders) AS given (topic_id, partition, leader)
        WHERE logs.topic_id = given.topic_id AND logs.partition = given.partition AND logs.leader <> given.leader;
    END IF;
    PERFORM registry_count();
    RETURN true;
END $$;
"""

_HEAD = """
SELECT registry.version,
    (SELECT coalesce(json_agg(each ORDER BY broker_id), '[]')::text
        FROM (SELECT broker_id, incarnation, addresses, rack, is_draining FROM brokers) AS each) AS brokers,
    (SELECT coalesce(json_agg(json_build_array(scope, broker_id, epoch) ORDER BY scope), '[]')::text
        FROM leases) AS leases,
    (SELECT coalesce(array_agg(topic_id), '{}') FROM deleted_topics WHERE version > $1) AS deleted
FROM registry
"""
# The next page begins after the last row of this one. A row that changes meanwhile moves to the end.
_LEADERSHIPS = """
SELECT version, log_id, topic_id, partition, leader, leader_epoch FROM logs
WHERE (version, log_id) > ($1::bigint, $2::bigint) ORDER BY version, log_id LIMIT $3
"""

# Added to, never changed. A version that only changes functions adds an empty script.
_SCRIPTS = (_TABLES, _LOGS)


async def _upgrade(connection: Connection, stored: int) -> None:
    for script in (*_SCRIPTS[stored:1], _FUNCTIONS, *_SCRIPTS[max(stored, 1) :]):
        await connection.execute(script)


REGISTRY = Component("registry", len(_SCRIPTS), _upgrade)


class PostgresRegistry(Registry):
    """Beats, and what follows from them, go over a session of their own: nothing that takes long delays them."""

    def __init__(self, beats: Session, others: Session, dead_after_s: float) -> None:
        """Use `open`."""
        self._beats = beats
        self._others = others
        self._dead_after = dead_after_s

    @classmethod
    async def open(
        cls, settings: PostgresSettings, logs: Component, *, dead_after_s: float = DEAD_AFTER_S
    ) -> "PostgresRegistry":
        """`logs` is the component of the storage engine that has the table of logs. Creates what is missing. Fails as
        `Session.open` does: only if an operator has to correct something."""
        components = [METADATA, logs, REGISTRY]
        others = await Session.open(settings, components, name="tidelog controller")
        try:
            quick = replace(settings, deadline_s=min(settings.deadline_s, _BEAT_DEADLINE_S))
            beats = await Session.open(quick, components, name="tidelog beats")
        except BaseException:
            await others.close()
            raise
        return cls(beats, others, dead_after_s)

    async def register(self, me: Membership) -> None:
        addresses = json.dumps({name: list(address) for name, address in sorted(me.addresses.items())})
        is_registered = await self._change(
            "SELECT registry_register($1, $2, $3, $4, $5, $6)",
            *(me.broker_id, me.incarnation, addresses, me.rack, me.is_draining, self._dead_after),
        )
        if not is_registered:
            raise Fenced(f"another broker with the id {me.broker_id} is up; give this one another id")

    async def beat(self, me: Membership) -> Beat:
        row = await self._beats.statement(
            lambda connection: connection.fetchrow(
                "SELECT * FROM registry_beat($1, $2, $3)", me.broker_id, me.incarnation, self._dead_after
            )
        )
        assert row is not None
        if row["version"] is None:
            raise Fenced(f"broker {me.broker_id} was presumed dead, or replaced by another process")
        return Beat(row["version"], row["now"], row["has_controller"])

    async def leave(self, me: Membership) -> None:
        await self._change("SELECT registry_leave($1, $2)", me.broker_id, me.incarnation)

    async def drain(self, broker_id: int, draining: bool) -> None:
        if not await self._change("SELECT registry_drain($1, $2)", broker_id, draining):
            raise UnknownBroker(f"broker {broker_id} is not registered")

    async def changes_since(self, version: int) -> Changes:
        head = await self._beats.read(lambda connection: connection.fetchrow(_HEAD, version))
        assert head is not None
        newest: int = head["version"]
        is_whole = not max(0, newest - DELETIONS_KEPT) <= version <= newest
        leaderships: list[Leadership] = []
        after = (-1 if is_whole else version, 1 << 62)
        while True:
            page = await self._page(*after)
            leaderships += [Leadership(*row[2:]) for row in page]  # type: ignore[misc]
            if len(page) < _PAGE:
                break
            after = (page[-1][0], page[-1][1])
        return Changes(
            newest,
            [_membership(each) for each in json.loads(head["brokers"])],
            [Lease(*each) for each in json.loads(head["leases"])],
            leaderships,
            [] if is_whole else head["deleted"],
            is_whole,
        )

    async def _page(self, version: int, log_id: int) -> list[Any]:
        return await self._beats.read(lambda connection: connection.fetch(_LEADERSHIPS, version, log_id, _PAGE))

    async def stand_for_controller(self, me: Membership) -> Fence | None:
        epoch = await self._change(
            "SELECT registry_stand($1, $2, $3)", me.broker_id, me.incarnation, self._dead_after
        )
        if epoch is None:
            raise Fenced(f"broker {me.broker_id} was presumed dead, or replaced by another process")
        return Fence(CONTROLLER, epoch) if epoch else None

    async def bury(self, controller: Fence) -> list[int]:
        dead: list[int] | None = await self._change(
            "SELECT registry_bury($1, $2)", controller.epoch, self._dead_after
        )
        if dead is None:
            raise _replaced(controller)
        return dead

    async def assign(
        self, controller: Fence, leases: Sequence[tuple[str, int]], leaders: Sequence[tuple[bytes, int, int]]
    ) -> None:
        scopes, owners = zip(*leases, strict=True) if leases else ((), ())
        topics, partitions, brokers = zip(*leaders, strict=True) if leaders else ((), (), ())
        is_controller = await self._change(
            "SELECT registry_assign($1, $2, $3, $4, $5, $6)",
            *(controller.epoch, scopes, owners, topics, partitions, brokers),
        )
        if not is_controller:
            raise _replaced(controller)

    async def close(self) -> None:
        await self._beats.close()
        await self._others.close()

    async def _change(self, sql: str, *arguments: Any) -> Any:  # noqa: ANN401
        return await self._others.statement(lambda connection: connection.fetchval(sql, *arguments))


def _membership(row: dict[str, Any]) -> Membership:
    addresses = {name: Address(*address) for name, address in json.loads(row["addresses"]).items()}
    return Membership(row["broker_id"], row["incarnation"], addresses, row["rack"], row["is_draining"])


def _replaced(controller: Fence) -> Fenced:
    return Fenced(f"another broker is the controller, this one was at epoch {controller.epoch}")
