"""PostgreSQL: Holdpoint's connections, what they require of the server and of poolers, and helpers for SQL."""
