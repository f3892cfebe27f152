"""How a stage is called: one connection pool, no redirects, no header of the client."""
