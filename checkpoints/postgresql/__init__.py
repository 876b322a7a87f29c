"""How processes of Holdpoint connect to PostgreSQL, and what they need of the server and of the way to it."""
