"""The embedded PostgreSQL and Redis, with the database and its roles."""
