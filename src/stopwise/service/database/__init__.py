"""What the service keeps beside the evidence: one SQLite file, or one PostgreSQL for all replicas.

`connection` speaks to both; `schema` holds the numbered migrations; each other file is one subject:
`keys`, `sessions`, `trail` (modes and who changed what), `rounds` (rounds, items, sums by the
hour), `labels`, `open_rounds` (rounds begun over HTTP), `replies` (for retries).
"""
