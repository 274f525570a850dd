"""The functions of the order, in PL/pgSQL. One call is one statement and one transaction, so a broker that is paused
never holds a lock.

The functions run at READ COMMITTED, where each statement of a function sees what was committed before that statement
began. So after a statement that waited for a lock, the next one sees what the former holder of the lock did.

Locks are taken in this order, which excludes deadlocks:

    1. the key of a new object: the insertion waits for another one of the same key
    2. rows of `logs`, in order of log_id
    3. rows of `objects`, in order of object_id

A row of `logs` guards everything that belongs to the log. An object is declared dead by a statement that begins when
its row is locked: of two functions that each remove one of its last two extents, the second sees that none is left.

Every plan uses indexes, whatever the statistics say (`_PLANS`): plans are made once for a connection, perhaps when
the tables were still empty.
"""

from tidelog.storage.shared.postgres import statements as do

_PLANS = """
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off"""


def _performed(select: str) -> str:
    """PL/pgSQL discards the result of a query that begins with PERFORM."""
    return select.removeprefix("SELECT ")


FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION commit_bundle(
    p_key text, p_size bigint, p_broker integer, p_now bigint,
    p_logs bigint[], p_epochs integer[], p_bases bigint[], p_lasts bigint[], p_positions bigint[], p_sizes bigint[],
    p_timestamps bigint[], p_stables bigint[], p_producers bytea[],
    p_aborted_logs bigint[], p_aborted_lasts bigint[], p_aborted_firsts bigint[], p_aborted_producers bigint[],
    p_aborted_stables bigint[]
) RETURNS bigint[] LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_object bigint;
    v_counted bigint[];
BEGIN
    {do.ADD_BUNDLE} INTO v_object;
    IF v_object IS NULL THEN
        -- The key is known: this is a repetition, or the object was declared dead.
        {do.ANSWER_OF} INTO v_counted;
        RETURN coalesce(v_counted, '{{}}');
    END IF;
    PERFORM {_performed(do.LOCK_LOGS)};
    {do.ADD_EXTENTS} INTO v_counted;
    IF p_aborted_logs <> '{{}}' THEN
        {do.ADD_ABORTED};
    END IF;
    IF cardinality(v_counted) < cardinality(p_logs) THEN
        {do.CORRECT_ANSWER};
    END IF;
    RETURN v_counted;
END $$;

-- NULL: one of the logs does not exist.
CREATE OR REPLACE FUNCTION take_over_logs(p_topics bytea[], p_partitions integer[], p_broker integer)
RETURNS integer[] LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_logs bigint[];
    v_epochs integer[];
BEGIN
    {do.LOCK_WANTED} INTO v_logs;
    {do.EPOCHS_OF_WANTED} INTO v_epochs;
    IF array_position(v_epochs, NULL) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    {do.BEGIN_EPOCHS};
    {do.EPOCHS_OF_WANTED} INTO v_epochs;
    RETURN v_epochs;
END $$;

CREATE OR REPLACE FUNCTION load_log(
    p_topic bytea, p_partition integer, p_broker integer, p_epoch integer,
    OUT verdict text, OUT v_log bigint, OUT v_start bigint, OUT v_end bigint,
    OUT bases bigint[], OUT lasts bigint[], OUT keys text[], OUT positions bigint[], OUT sizes bigint[],
    OUT timestamps bigint[], OUT producers bytea[],
    OUT snapshot_offset bigint, OUT snapshot_facts bytea,
    OUT aborted_producers bigint[], OUT aborted_firsts bigint[], OUT aborted_lasts bigint[],
    OUT aborted_stables bigint[],
    OUT epochs integer[], OUT epoch_offsets bigint[],
    OUT clean bigint, OUT horizon bigint
) LANGUAGE plpgsql {_PLANS} AS $$
#variable_conflict use_column
DECLARE
    v_leader integer;
    v_epoch integer;
BEGIN
    -- A lock is all that this writes: nothing has to be durable when it returns.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- The lock waits for a commit that is under way. What comes later finds another epoch.
    {do.LOCK_PARTITION} INTO v_log, v_start, v_end, v_leader, v_epoch, clean, horizon;
    verdict := CASE WHEN v_log IS NULL THEN 'unknown'
        WHEN v_leader <> p_broker OR v_epoch <> p_epoch THEN 'not leader' ELSE 'done' END;
    IF verdict <> 'done' THEN
        RETURN;
    END IF;
    {do.EXTENTS_OF_LOG} INTO bases, lasts, keys, positions, sizes, timestamps, producers;
    {do.SNAPSHOT_OF_LOG} INTO snapshot_offset, snapshot_facts;
    {do.ABORTED_OF_LOG} INTO aborted_producers, aborted_firsts, aborted_lasts, aborted_stables;
    {do.EPOCHS_OF_LOG} INTO epochs, epoch_offsets;
END $$;

CREATE OR REPLACE FUNCTION replace_extents(
    p_log bigint, p_broker integer, p_epoch integer, p_key text, p_size bigint, p_now bigint,
    p_old_bases bigint[], p_old_lasts bigint[], p_old_keys text[], p_old_positions bigint[], p_old_sizes bigint[],
    p_bases bigint[], p_lasts bigint[], p_positions bigint[], p_sizes bigint[], p_timestamps bigint[],
    p_producers bytea[], p_snapshot_offset bigint, p_snapshot_facts bytea
) RETURNS text LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_end bigint := p_old_lasts[cardinality(p_old_lasts)];
    v_object bigint;
    v_leader integer;
    v_epoch integer;
    v_start bigint;
    v_high_watermark bigint;
    v_counted bigint[];
    v_bases bigint[];
    v_lasts bigint[];
    v_keys text[];
    v_positions bigint[];
    v_sizes bigint[];
    v_objects bigint[];
    v_bytes bigint;
BEGIN
    {do.ADD_SEGMENT} INTO v_object;
    IF v_object IS NULL THEN
        {do.ANSWER_OF} INTO v_counted;
        RETURN CASE WHEN p_log = ANY (v_counted) THEN 'done' ELSE 'changed' END;
    END IF;
    {do.LOCK_LOG} INTO v_leader, v_epoch, v_start, v_high_watermark;
    IF v_leader IS NULL OR v_leader <> p_broker OR v_epoch <> p_epoch THEN
        DELETE FROM objects WHERE object_id = v_object;
        RETURN CASE WHEN v_leader IS NULL THEN 'unknown' ELSE 'not leader' END;
    END IF;
    {do.FIND_OLD} INTO v_bases, v_lasts, v_keys, v_positions, v_sizes, v_objects, v_bytes;
    IF (v_bases, v_lasts, v_keys, v_positions, v_sizes)
        IS DISTINCT FROM (p_old_bases, p_old_lasts, p_old_keys, p_old_positions, p_old_sizes)
    THEN
        UPDATE objects SET counted = '{{}}', dead_since = p_now WHERE object_id = v_object;
        RETURN 'changed';
    END IF;
    PERFORM {_performed(do.LOCK_OBJECTS)};
    {do.REMOVE_OLD};
    {do.ADD_NEW};
    {do.BURY_OBJECTS};
    UPDATE logs SET bytes = bytes - v_bytes + (SELECT coalesce(sum(size), 0) FROM unnest(p_sizes) AS size)
    WHERE log_id = p_log;
    IF p_snapshot_offset IS NOT NULL THEN
        {do.KEEP_SNAPSHOT};
    END IF;
    RETURN 'done';
END $$;

CREATE OR REPLACE FUNCTION keep_snapshot(
    p_log bigint, p_broker integer, p_epoch integer, p_snapshot_offset bigint, p_snapshot_facts bytea
) RETURNS text LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_leader integer;
    v_epoch integer;
    v_start bigint;
    v_high_watermark bigint;
BEGIN
    {do.LOCK_LOG} INTO v_leader, v_epoch, v_start, v_high_watermark;
    IF v_leader IS NULL THEN
        RETURN 'unknown';
    ELSIF v_leader <> p_broker OR v_epoch <> p_epoch THEN
        RETURN 'not leader';
    END IF;
    {do.KEEP_SNAPSHOT};
    RETURN 'done';
END $$;

CREATE OR REPLACE FUNCTION keep_cleaned(
    p_log bigint, p_broker integer, p_epoch integer, p_clean bigint, p_horizon bigint, p_void bigint[]
) RETURNS text LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_leader integer;
    v_epoch integer;
    v_start bigint;
    v_high_watermark bigint;
BEGIN
    {do.LOCK_LOG} INTO v_leader, v_epoch, v_start, v_high_watermark;
    IF v_leader IS NULL THEN
        RETURN 'unknown';
    ELSIF v_leader <> p_broker OR v_epoch <> p_epoch THEN
        RETURN 'not leader';
    END IF;
    {do.FORGET_VOID};
    UPDATE logs SET clean_offset = greatest(clean_offset, p_clean), next_horizon = p_horizon WHERE log_id = p_log;
    RETURN 'done';
END $$;

-- Moves the start, and does one step of the work that follows from it. 'more': there is another step to do.
CREATE OR REPLACE FUNCTION move_start_of_log(
    p_log bigint, p_broker integer, p_epoch integer, p_start bigint, p_now bigint, p_most integer
) RETURNS text LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_leader integer;
    v_epoch integer;
    v_start bigint;
    v_high_watermark bigint;
    v_last bigint;
    v_objects bigint[];
    v_bytes bigint;
    v_extents bigint;
    v_aborted bigint;
BEGIN
    {do.LOCK_LOG} INTO v_leader, v_epoch, v_start, v_high_watermark;
    IF v_leader IS NULL THEN
        RETURN 'unknown';
    ELSIF v_leader <> p_broker OR v_epoch <> p_epoch THEN
        RETURN 'not leader';
    ELSIF p_start > v_high_watermark THEN
        RETURN 'too high';
    END IF;
    v_start := greatest(v_start, p_start);
    {do.FIND_BEFORE_START} INTO v_last, v_objects, v_bytes, v_extents;
    UPDATE logs SET start_offset = v_start, bytes = bytes - v_bytes WHERE log_id = p_log;
    IF v_extents > 0 THEN
        PERFORM {_performed(do.LOCK_OBJECTS)};
        {do.REMOVE_BEFORE_START};
        {do.BURY_OBJECTS};
    END IF;
    {do.FORGET_ABORTED};
    GET DIAGNOSTICS v_aborted = ROW_COUNT;
    {do.FORGET_EPOCHS};
    RETURN CASE WHEN v_extents = p_most OR v_aborted = p_most THEN 'more' ELSE 'done' END;
END $$;

CREATE OR REPLACE FUNCTION delete_logs(p_topic bytea) RETURNS void LANGUAGE plpgsql {_PLANS} AS $$
BEGIN
    PERFORM {_performed(do.LOCK_TOPIC)};
    WITH gone AS (DELETE FROM logs WHERE topic_id = p_topic RETURNING topic_id, log_id)
    INSERT INTO deleted_logs (topic_id, log_id) SELECT topic_id, log_id FROM gone;
END $$;

-- One step of removing what belongs to deleted logs. True: there is another step to do.
CREATE OR REPLACE FUNCTION clear_deleted_logs(p_topic bytea, p_now bigint, p_most integer)
RETURNS boolean LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_logs bigint[];
    v_lasts bigint[];
    v_objects bigint[];
    v_extents bigint;
    v_aborted bigint;
BEGIN
    {do.FIND_DELETED} INTO v_logs, v_lasts, v_objects, v_extents;
    IF v_extents > 0 THEN
        PERFORM {_performed(do.LOCK_OBJECTS)};
        {do.REMOVE_DELETED};
        {do.BURY_OBJECTS};
    END IF;
    {do.FORGET_DELETED_ABORTED};
    GET DIAGNOSTICS v_aborted = ROW_COUNT;
    IF v_extents = p_most OR v_aborted = p_most THEN
        RETURN true;
    END IF;
    DELETE FROM epochs USING deleted_logs WHERE topic_id = p_topic AND epochs.log_id = deleted_logs.log_id;
    DELETE FROM snapshots USING deleted_logs WHERE topic_id = p_topic AND snapshots.log_id = deleted_logs.log_id;
    DELETE FROM deleted_logs WHERE topic_id = p_topic;
    RETURN false;
END $$;

-- Marks objects as removed, and one step of forgetting those that were removed long ago. True: another step is to do.
CREATE OR REPLACE FUNCTION forget_objects(p_keys text[], p_now bigint, p_keep bigint, p_most integer)
RETURNS boolean LANGUAGE plpgsql {_PLANS} AS $$
DECLARE
    v_objects bigint[];
    v_purged bigint;
BEGIN
    {do.LOCK_FORGOTTEN} INTO v_objects;
    {do.MARK_FORGOTTEN};
    {do.PURGE_FORGOTTEN};
    GET DIAGNOSTICS v_purged = ROW_COUNT;
    RETURN v_purged = p_most;
END $$;
"""  # noqa: S608  (all parts are constants)
