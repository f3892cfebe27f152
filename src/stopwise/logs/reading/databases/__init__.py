"""Logs that lie in a database: the counting and the adding up are done there."""

from stopwise.logs.reading.databases.query import Query

__all__ = ["Query"]
