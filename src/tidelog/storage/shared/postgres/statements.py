"""The statements of the order's functions (`functions.py`), each on its own, because a test looks at their plans.

In them `p_` is an argument and `v_` a variable of the function that they are part of.
"""

# What a commit does

ADD_BUNDLE = """
    INSERT INTO objects (key, size, counted) VALUES (p_key, p_size, p_logs)
    ON CONFLICT (key) DO NOTHING RETURNING object_id"""

ANSWER_OF = "SELECT counted FROM objects WHERE key = p_key"

LOCK_LOGS = "SELECT FROM logs WHERE log_id = ANY (p_logs) ORDER BY log_id FOR NO KEY UPDATE"

ADD_EXTENTS = """
    WITH parts AS (
        SELECT * FROM unnest(
            p_logs, p_epochs, p_bases, p_lasts, p_positions, p_sizes, p_timestamps, p_stables, p_producers
        ) AS part (log_id, epoch, base_offset, last_offset, position, size, max_timestamp, stable_offset, producers)
    ), passed AS (
        UPDATE logs SET high_watermark = parts.last_offset + 1, stable_offset = parts.stable_offset,
            bytes = logs.bytes + parts.size
        FROM parts
        WHERE logs.log_id = parts.log_id AND logs.leader = p_broker AND logs.leader_epoch = parts.epoch
            AND logs.high_watermark = parts.base_offset
        RETURNING parts.*, logs.epoch_start
    ), added AS (
        INSERT INTO extents (log_id, last_offset, base_offset, object_id, position, size, max_timestamp, producers)
        SELECT log_id, last_offset, base_offset, v_object, position, size, max_timestamp, producers FROM passed
    ), begun AS (
        INSERT INTO epochs (log_id, leader_epoch, first_offset)
        SELECT log_id, epoch, base_offset FROM passed WHERE base_offset = epoch_start
    )
    SELECT coalesce(array_agg(log_id), '{}') FROM passed"""

ADD_ABORTED = """
    INSERT INTO aborted (log_id, last_offset, first_offset, producer_id, stable_offset)
    SELECT * FROM unnest(p_aborted_logs, p_aborted_lasts, p_aborted_firsts, p_aborted_producers, p_aborted_stables)
        AS one (log_id, last_offset, first_offset, producer_id, stable_offset)
    WHERE log_id = ANY (v_counted)"""

CORRECT_ANSWER = """
    UPDATE objects SET counted = v_counted, dead_since = CASE WHEN v_counted = '{}' THEN p_now END
    WHERE object_id = v_object"""

# What a leader does when it begins

LOCK_WANTED = """
    SELECT coalesce(array_agg(log_id), '{}') FROM (
        SELECT logs.log_id FROM unnest(p_topics, p_partitions) AS wanted (topic_id, partition)
        JOIN logs ON logs.topic_id = wanted.topic_id AND logs.partition = wanted.partition
        ORDER BY logs.log_id FOR NO KEY UPDATE OF logs
    ) AS locked"""

BEGIN_EPOCHS = """
    UPDATE logs SET leader = p_broker, leader_epoch = leader_epoch + 1, epoch_start = high_watermark
    WHERE log_id = ANY (v_logs)"""

EPOCHS_OF_WANTED = """
    SELECT array_agg(logs.leader_epoch ORDER BY wanted.number)
    FROM unnest(p_topics, p_partitions) WITH ORDINALITY AS wanted (topic_id, partition, number)
    LEFT JOIN logs ON logs.topic_id = wanted.topic_id AND logs.partition = wanted.partition"""

LOCK_PARTITION = """
    SELECT log_id, start_offset, high_watermark, leader, leader_epoch, clean_offset, next_horizon FROM logs
    WHERE topic_id = p_topic AND partition = p_partition FOR NO KEY UPDATE"""

EXTENTS_OF_LOG = """
    SELECT array_agg(base_offset), array_agg(last_offset), array_agg(key), array_agg(position), array_agg(size),
        array_agg(max_timestamp), array_agg(producers)
    FROM (
        SELECT extents.*, objects.key FROM extents JOIN objects ON objects.object_id = extents.object_id
        WHERE log_id = v_log AND last_offset >= v_start ORDER BY log_id, last_offset
    ) AS ordered"""

SNAPSHOT_OF_LOG = 'SELECT "offset", facts FROM snapshots WHERE log_id = v_log'

ABORTED_OF_LOG = """
    SELECT array_agg(producer_id), array_agg(first_offset), array_agg(last_offset), array_agg(stable_offset)
    FROM (
        SELECT * FROM aborted WHERE log_id = v_log AND last_offset >= v_start ORDER BY log_id, last_offset
    ) AS ordered"""

EPOCHS_OF_LOG = """
    SELECT array_agg(leader_epoch), array_agg(first_offset)
    FROM (SELECT * FROM epochs WHERE log_id = v_log ORDER BY log_id, leader_epoch) AS ordered"""

# What the upkeep of a log does

ADD_SEGMENT = """
    INSERT INTO objects (key, size, counted, dead_since)
    VALUES (p_key, p_size, ARRAY[p_log], CASE WHEN p_bases = '{}' THEN p_now END)
    ON CONFLICT (key) DO NOTHING RETURNING object_id"""

LOCK_LOG = """
    SELECT leader, leader_epoch, start_offset, high_watermark FROM logs WHERE log_id = p_log FOR NO KEY UPDATE"""

FIND_OLD = """
    SELECT array_agg(base_offset), array_agg(last_offset), array_agg(key), array_agg(position), array_agg(size),
        array_agg(object_id), sum(size)
    FROM (
        SELECT extents.*, objects.key FROM extents JOIN objects ON objects.object_id = extents.object_id
        WHERE log_id = p_log AND last_offset BETWEEN greatest(p_old_bases[1], v_start) AND v_end
        ORDER BY log_id, last_offset
    ) AS ordered"""

LOCK_OBJECTS = "SELECT FROM objects WHERE object_id = ANY (v_objects) ORDER BY object_id FOR NO KEY UPDATE"

BURY_OBJECTS = """
    UPDATE objects SET dead_since = p_now
    WHERE object_id = ANY (v_objects) AND dead_since IS NULL
        AND NOT EXISTS (SELECT FROM extents WHERE extents.object_id = objects.object_id)"""

REMOVE_OLD = """
    DELETE FROM extents
    WHERE log_id = p_log AND last_offset BETWEEN greatest(p_old_bases[1], v_start) AND v_end"""

ADD_NEW = """
    INSERT INTO extents (log_id, last_offset, base_offset, object_id, position, size, max_timestamp, producers)
    SELECT p_log, last_offset, base_offset, v_object, position, size, max_timestamp, producers
    FROM unnest(p_bases, p_lasts, p_positions, p_sizes, p_timestamps, p_producers)
        AS extent (base_offset, last_offset, position, size, max_timestamp, producers)"""

KEEP_SNAPSHOT = """
    INSERT INTO snapshots (log_id, "offset", facts) VALUES (p_log, p_snapshot_offset, p_snapshot_facts)
    ON CONFLICT (log_id) DO UPDATE SET "offset" = excluded."offset", facts = excluded.facts
    WHERE snapshots."offset" <= excluded."offset" """

FORGET_VOID = "DELETE FROM aborted WHERE log_id = p_log AND last_offset = ANY (p_void)"

FIND_BEFORE_START = """
    SELECT max(last_offset), array_agg(object_id), coalesce(sum(size), 0), count(*)
    FROM (
        SELECT last_offset, object_id, size FROM extents WHERE log_id = p_log AND last_offset < v_start
        ORDER BY log_id, last_offset LIMIT p_most
    ) AS step"""

REMOVE_BEFORE_START = "DELETE FROM extents WHERE log_id = p_log AND last_offset <= v_last"

FORGET_ABORTED = """
    DELETE FROM aborted WHERE log_id = p_log AND last_offset <= (
        SELECT max(last_offset) FROM (
            SELECT last_offset FROM aborted WHERE log_id = p_log AND last_offset < v_start
            ORDER BY log_id, last_offset LIMIT p_most
        ) AS step
    )"""

FORGET_EPOCHS = """
    DELETE FROM epochs WHERE log_id = p_log AND leader_epoch < (
        SELECT max(leader_epoch) FROM epochs WHERE log_id = p_log AND first_offset <= v_start
    )"""

# Topics that are deleted

LOCK_TOPIC = (
    "SELECT FROM logs WHERE log_id = ANY (ARRAY(SELECT log_id FROM logs WHERE topic_id = p_topic))"
    " ORDER BY log_id FOR UPDATE"
)

FIND_DELETED = """
    SELECT array_agg(log_id), array_agg(last_offset), array_agg(object_id), count(*)
    FROM (
        SELECT extents.log_id, extents.last_offset, extents.object_id
        FROM deleted_logs JOIN extents ON extents.log_id = deleted_logs.log_id
        WHERE deleted_logs.topic_id = p_topic LIMIT p_most
    ) AS step"""

REMOVE_DELETED = """
    DELETE FROM extents USING unnest(v_logs, v_lasts) AS gone (log_id, last_offset)
    WHERE extents.log_id = gone.log_id AND extents.last_offset = gone.last_offset"""

FORGET_DELETED_ABORTED = """
    DELETE FROM aborted USING (
        SELECT aborted.log_id, aborted.last_offset
        FROM deleted_logs JOIN aborted ON aborted.log_id = deleted_logs.log_id
        WHERE deleted_logs.topic_id = p_topic LIMIT p_most
    ) AS gone
    WHERE aborted.log_id = gone.log_id AND aborted.last_offset = gone.last_offset"""

# Garbage

DEAD_OBJECTS = """
    SELECT key FROM objects
    WHERE dead_since IS NOT NULL AND removed_since IS NULL AND dead_since < p_before
        AND NOT EXISTS (SELECT FROM extents WHERE extents.object_id = objects.object_id)
    ORDER BY dead_since, object_id LIMIT p_most"""

LOCK_FORGOTTEN = """
    SELECT coalesce(array_agg(object_id) FILTER (WHERE dead_since IS NOT NULL AND removed_since IS NULL), '{}')
    FROM (
        SELECT object_id, dead_since, removed_since FROM objects WHERE key = ANY (p_keys)
        ORDER BY object_id FOR NO KEY UPDATE
    ) AS locked"""

MARK_FORGOTTEN = "UPDATE objects SET removed_since = p_now WHERE object_id = ANY (v_objects)"

PURGE_FORGOTTEN = """
    DELETE FROM objects WHERE object_id = ANY (ARRAY(
        SELECT object_id FROM objects WHERE removed_since <= p_now - p_keep ORDER BY removed_since LIMIT p_most
        FOR UPDATE SKIP LOCKED
    ))"""
