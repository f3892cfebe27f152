"""The stores in databases: SQLite and PostgreSQL."""
