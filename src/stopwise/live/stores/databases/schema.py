"""The tables of the stores in databases.

Totals stand in `stopwise_counters`, one row each, and once more by the hour in `stopwise_hours`:
additive, so that processes only ever increment, and a series over time comes for free. Counts that
lose weight (`half_life`) are multiplied down and added to in one transaction. Policies that decide
per item have three tables more, see `stopwise.live.stores.databases.transitions`.
"""

from __future__ import annotations

VERSION = 2

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS stopwise_cascades (
    cascade TEXT PRIMARY KEY, version BIGINT NOT NULL, seed TEXT NOT NULL, settings TEXT NOT NULL,
    change BIGINT NOT NULL DEFAULT 0, rounds BIGINT NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS stopwise_writers (
    cascade TEXT NOT NULL, writer BIGINT NOT NULL, name TEXT NOT NULL, token TEXT NOT NULL,
    begun BIGINT NOT NULL DEFAULT 0, rounds BIGINT NOT NULL DEFAULT 0,
    watermark BIGINT NOT NULL DEFAULT 0, held DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (cascade, writer), UNIQUE (cascade, name))""",
    """CREATE TABLE IF NOT EXISTS stopwise_leases (
    cascade TEXT NOT NULL, writer BIGINT NOT NULL, until DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (cascade, writer))""",
    """CREATE TABLE IF NOT EXISTS stopwise_segments (
    cascade TEXT NOT NULL, segment TEXT NOT NULL, number BIGINT NOT NULL,
    change BIGINT NOT NULL, drift TEXT, PRIMARY KEY (cascade, segment))""",
    """CREATE INDEX IF NOT EXISTS stopwise_segments_change
    ON stopwise_segments (cascade, change)""",
    """CREATE INDEX IF NOT EXISTS stopwise_segments_number
    ON stopwise_segments (cascade, number)""",
    """CREATE TABLE IF NOT EXISTS stopwise_counters (
    cascade TEXT NOT NULL, segment TEXT NOT NULL, counter TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL, PRIMARY KEY (cascade, segment, counter))""",
    """CREATE TABLE IF NOT EXISTS stopwise_hours (
    cascade TEXT NOT NULL, segment TEXT NOT NULL, hour BIGINT NOT NULL, counter TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL, PRIMARY KEY (cascade, segment, hour, counter))""",
    """CREATE TABLE IF NOT EXISTS stopwise_rounds (
    cascade TEXT NOT NULL, writer BIGINT NOT NULL, sequence BIGINT NOT NULL,
    ended DOUBLE PRECISION NOT NULL, round TEXT NOT NULL,
    PRIMARY KEY (cascade, writer, sequence))""",
    """CREATE TABLE IF NOT EXISTS stopwise_situations (
    cascade TEXT PRIMARY KEY, epoch TEXT, binning TEXT, settled BIGINT NOT NULL DEFAULT 0,
    base BIGINT NOT NULL DEFAULT 0, rounds BIGINT NOT NULL DEFAULT 0, due BIGINT NOT NULL,
    change BIGINT NOT NULL DEFAULT 0)""",
    """CREATE TABLE IF NOT EXISTS stopwise_item_rows (
    cascade TEXT NOT NULL, number BIGINT NOT NULL, item TEXT NOT NULL, confidences TEXT NOT NULL,
    PRIMARY KEY (cascade, number))""",
    """CREATE TABLE IF NOT EXISTS stopwise_transitions (
    cascade TEXT NOT NULL, epoch TEXT NOT NULL, kind TEXT NOT NULL, stage BIGINT NOT NULL,
    before BIGINT NOT NULL, after BIGINT NOT NULL, value BIGINT NOT NULL,
    ruled BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (cascade, epoch, kind, stage, before, after))""",
)
ADD_TRANSITIONS = """INSERT INTO stopwise_transitions
(cascade, epoch, kind, stage, before, after, value) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (cascade, epoch, kind, stage, before, after)
DO UPDATE SET value = stopwise_transitions.value + excluded.value"""
ADD = """INSERT INTO stopwise_counters (cascade, segment, counter, value) VALUES (?, ?, ?, ?)
ON CONFLICT (cascade, segment, counter)
DO UPDATE SET value = stopwise_counters.value + excluded.value"""
ADD_HOUR = """INSERT INTO stopwise_hours (cascade, segment, hour, counter, value)
VALUES (?, ?, ?, ?, ?) ON CONFLICT (cascade, segment, hour, counter)
DO UPDATE SET value = stopwise_hours.value + excluded.value"""
