"""The tables and functions of the registry. docs/formats/registry.md describes them.

One call of a function is one statement and one transaction, so a broker that is paused never holds a lock. Locks are
taken in this order: rows of `brokers`, of `leases` (by scope), of `logs` (by log_id, as the storage engine does), and
last the row of `registry`. That one makes versions visible in order: whoever sees a version sees all changes up to
it.

The leaders are columns of the storage engine's table `logs`. What ties the two together is in this module: `_LOGS`
adds a column and triggers to that table, and the functions `registry_register` and `registry_assign` change leaders.
`registry.py` reads them with one statement. Whoever inserts or deletes logs or changes leaders, the triggers count
the version up.

A beat is not synced to disk: nobody relies on it after a crash.
"""

from tidelog.postgres import Component, Connection

DELETIONS_KEPT = 10_000  # versions

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

_LOGS = f"""
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
    DELETE FROM deleted_topics WHERE version <= current_setting('tidelog.version')::bigint - {DELETIONS_KEPT};
    RETURN NULL;
END $$;
CREATE TRIGGER registry_count BEFORE INSERT OR DELETE OR UPDATE OF leader, leader_epoch ON logs
FOR EACH STATEMENT EXECUTE FUNCTION registry_count_logs();
CREATE TRIGGER registry_stamp BEFORE INSERT OR UPDATE OF leader, leader_epoch ON logs
FOR EACH ROW EXECUTE FUNCTION registry_stamp_log();
CREATE TRIGGER registry_deleted AFTER DELETE ON logs REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION registry_note_deleted();
"""  # noqa: S608  (all parts are constants)

_DRAINED = """
CREATE TABLE drained_brokers (broker_id integer PRIMARY KEY, since timestamptz NOT NULL DEFAULT now());
"""

# Earlier versions wrote the markers of transactions with the epoch of the controller. Partitions refuse markers with
# a lower epoch than the last one of the same producer.
_SHARD_EPOCHS = """
UPDATE leases SET epoch = epoch + (SELECT controller.epoch FROM leases AS controller WHERE scope = 'controller')
WHERE scope <> 'controller' AND EXISTS (SELECT FROM leases WHERE scope = 'controller');
"""

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

-- With the lock on the registry calls take turns: of two that drain the last two brokers, the second is refused.
CREATE OR REPLACE FUNCTION registry_set_drained(p_broker integer, p_drained boolean, p_dead_after double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_drained boolean;
BEGIN
    PERFORM FROM registry FOR NO KEY UPDATE;
    v_drained := EXISTS (SELECT FROM drained_brokers WHERE broker_id = p_broker);
    IF v_drained = p_drained THEN
        RETURN CASE WHEN v_drained OR EXISTS (SELECT FROM brokers WHERE broker_id = p_broker)
            THEN 'done' ELSE 'unknown' END;
    ELSIF NOT p_drained THEN
        DELETE FROM drained_brokers WHERE broker_id = p_broker;
    ELSIF NOT EXISTS (SELECT FROM brokers WHERE broker_id = p_broker) THEN
        RETURN 'unknown';
    ELSIF NOT EXISTS (
        SELECT FROM brokers
        WHERE broker_id <> p_broker AND NOT is_draining AND addresses <> '{}' AND registry_is_live(beat, p_dead_after)
            AND NOT EXISTS (SELECT FROM drained_brokers WHERE drained_brokers.broker_id = brokers.broker_id)
    ) THEN
        RETURN 'no other';
    ELSE
        INSERT INTO drained_brokers (broker_id) VALUES (p_broker);
    END IF;
    PERFORM registry_count();
    RETURN 'done';
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
) RETURNS boolean LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
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

# Added to, never changed. A version that only changes functions adds an empty script.
_SCRIPTS = (_TABLES, _LOGS, _DRAINED, _SHARD_EPOCHS)


async def _upgrade(connection: Connection, stored: int) -> None:
    for script in _SCRIPTS[stored:]:
        await connection.execute(script)
    await connection.execute(_FUNCTIONS)


REGISTRY = Component("registry", len(_SCRIPTS), _upgrade)
