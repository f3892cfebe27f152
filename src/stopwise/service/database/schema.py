"""The tables, as numbered migrations: written once, never changed, only added to.

The statements are the common part of SQLite's and PostgreSQL's SQL. Times are seconds since 1970.
"""

from __future__ import annotations

FIRST = """
CREATE TABLE keys (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL, name TEXT NOT NULL, scopes TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION, budget DOUBLE PRECISION
);
CREATE TABLE sessions (
    hash TEXT PRIMARY KEY, key_id TEXT NOT NULL, created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL
);
CREATE TABLE secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE modes (
    cascade_name TEXT PRIMARY KEY, mode TEXT NOT NULL, at DOUBLE PRECISION NOT NULL
);
CREATE TABLE trail (
    id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL,
    cascade_name TEXT NOT NULL, what TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE epochs (
    cascade_name TEXT NOT NULL, epoch TEXT NOT NULL, began DOUBLE PRECISION NOT NULL,
    settings TEXT NOT NULL, PRIMARY KEY (cascade_name, epoch)
);
CREATE TABLE rounds (
    id TEXT PRIMARY KEY, cascade_name TEXT NOT NULL, epoch TEXT NOT NULL, segment TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL, differ BIGINT NOT NULL, complete BIGINT NOT NULL,
    form TEXT NOT NULL
);
CREATE INDEX rounds_by_time ON rounds (cascade_name, at);
CREATE TABLE items (
    round_id TEXT PRIMARY KEY, cascade_name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL, request TEXT NOT NULL, outputs TEXT NOT NULL
);
CREATE INDEX items_by_expiry ON items (expires);
CREATE TABLE labels (
    round_id TEXT PRIMARY KEY, cascade_name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
    who TEXT NOT NULL, correct TEXT NOT NULL, note TEXT NOT NULL
);
CREATE TABLE sums (
    cascade_name TEXT NOT NULL, epoch TEXT NOT NULL, segment TEXT NOT NULL, hour BIGINT NOT NULL,
    name TEXT NOT NULL, value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (cascade_name, epoch, segment, hour, name)
);
CREATE TABLE batches (id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);
CREATE TABLE open_rounds (
    id TEXT PRIMARY KEY, cascade_name TEXT NOT NULL, began DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION NOT NULL, form TEXT NOT NULL
);
CREATE TABLE replies (
    key_id TEXT NOT NULL, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, asked TEXT NOT NULL,
    status BIGINT NOT NULL, reply TEXT NOT NULL, PRIMARY KEY (key_id, name)
)
"""

ALARMS = """
CREATE TABLE alarms (
    id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, cascade_name TEXT NOT NULL,
    epoch TEXT NOT NULL, segment TEXT NOT NULL, shallow BIGINT NOT NULL, deep BIGINT NOT NULL,
    before DOUBLE PRECISION NOT NULL, after DOUBLE PRECISION NOT NULL
);
CREATE INDEX alarms_by_time ON alarms (cascade_name, epoch, at)
"""

GRANTS = """
CREATE TABLE grants (
    name TEXT NOT NULL, day BIGINT NOT NULL, replica TEXT NOT NULL, held DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL, PRIMARY KEY (name, day, replica)
);
CREATE INDEX sums_by_hour ON sums (hour, name)
"""

MIGRATIONS: tuple[str, ...] = (FIRST, ALARMS, GRANTS)
