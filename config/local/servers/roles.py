"""Creates the database's two roles: the owner migrates, the application has only the rights that it needs.

The application's role owns nothing; `checkpoints.postgresql.privileges` grants its rights on each table after every
migration. So not even a hole in the application lets anyone rewrite the audit.
"""

from __future__ import annotations

import psycopg
from psycopg import sql


def create(connection: psycopg.Connection, role: str, password: str = "") -> None:
    """Create the login role `role` if it is missing, and set its password if one is given."""
    known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone()
    if not known:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    if password:
        statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(password))
        connection.execute(statement)


def create_database(connection: psycopg.Connection, name: str, owner: str, template: str = "template0") -> None:
    """Create the database `name` for `owner` if it is missing. The connection must be in autocommit."""
    known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
    if not known:
        statement = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}")
        connection.execute(statement.format(*map(sql.Identifier, (name, owner, template))))
