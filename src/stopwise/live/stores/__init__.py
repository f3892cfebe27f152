"""Where finished rounds are kept: a log, a SQLite file, PostgreSQL, a snapshot."""
