"""The tables of the order. `docs/formats/order.md` describes them.

There are no foreign keys: their checks would cost more than the commit itself. Instead the functions
(`functions.py`), which are the only writers, lock the row of a log before they change anything that belongs to it.

Offsets, sizes and times are `bigint`; times are milliseconds since 1970 by the clock of the broker that wrote them.
Keys are compared byte by byte (`COLLATE "C"`), as Python does.
"""

TABLES = """
CREATE TABLE logs (
    log_id          bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id        bytea   NOT NULL,
    topic           text    NOT NULL,
    partition       integer NOT NULL,
    leader          integer NOT NULL DEFAULT -1,
    leader_epoch    integer NOT NULL DEFAULT -1,
    epoch_start     bigint  NOT NULL DEFAULT 0,
    start_offset    bigint  NOT NULL DEFAULT 0,
    high_watermark  bigint  NOT NULL DEFAULT 0,
    stable_offset   bigint  NOT NULL DEFAULT 0,
    bytes           bigint  NOT NULL DEFAULT 0,
    UNIQUE (topic_id, partition),
    CHECK (0 <= start_offset AND start_offset <= high_watermark)
) WITH (
    -- Each commit updates a row; with room in its page the new version needs no index entries (HOT).
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);

CREATE TABLE epochs (
    log_id          bigint  NOT NULL,
    leader_epoch    integer NOT NULL,
    first_offset    bigint  NOT NULL,
    PRIMARY KEY (log_id, leader_epoch)
);

CREATE TABLE objects (
    object_id       bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    size            bigint  NOT NULL,
    dead_since      bigint,
    removed_since   bigint,
    key             text    COLLATE "C" NOT NULL UNIQUE CHECK (key <> ''),
    counted         bigint[] NOT NULL,
    CHECK (removed_since IS NULL OR dead_since IS NOT NULL)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX objects_dead ON objects (dead_since, object_id) WHERE dead_since IS NOT NULL AND removed_since IS NULL;
CREATE INDEX objects_removed ON objects (removed_since) WHERE removed_since IS NOT NULL;

CREATE TABLE extents (
    log_id          bigint  NOT NULL,
    last_offset     bigint  NOT NULL,
    base_offset     bigint  NOT NULL,
    object_id       bigint  NOT NULL,
    position        bigint  NOT NULL,
    size            bigint  NOT NULL,
    max_timestamp   bigint  NOT NULL,
    producers       bytea   NOT NULL,
    PRIMARY KEY (log_id, last_offset),
    CHECK (base_offset <= last_offset AND position >= 0 AND size > 0)
) WITH (
    -- A share of the table, and no pauses: the defaults come too late and work too slowly for 10^8 rows.
    autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.01,
    autovacuum_analyze_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX extents_of_object ON extents (object_id);

CREATE TABLE snapshots (
    log_id          bigint  PRIMARY KEY,
    "offset"        bigint  NOT NULL,
    facts           bytea   NOT NULL
);

CREATE TABLE aborted (
    log_id          bigint  NOT NULL,
    last_offset     bigint  NOT NULL,
    first_offset    bigint  NOT NULL,
    producer_id     bigint  NOT NULL,
    stable_offset   bigint  NOT NULL,
    PRIMARY KEY (log_id, last_offset)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);

CREATE TABLE deleted_logs (
    topic_id        bytea   NOT NULL,
    log_id          bigint  NOT NULL,
    PRIMARY KEY (topic_id, log_id)
);
"""

# Version 2: how far a log is compacted. A function whose result has other columns is made anew.
CLEANED = """
ALTER TABLE logs ADD COLUMN clean_offset bigint NOT NULL DEFAULT 0, ADD COLUMN next_horizon bigint;
DROP FUNCTION IF EXISTS load_log(bytea, integer, integer, integer);
"""
