"""Databases of a test's own, on the session's server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psycopg
from django.conf import settings
from django.db import connections
from psycopg import sql

from config.local.servers import APPLICATION, OWNER, create_database
from tests.harness.session import RUNNING_RELEASE, Session


@dataclass
class Database:
    name: str
    servers: Session

    def url(self, user: str) -> str:
        return self.servers.postgres.url(self.name, user)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self.url(APPLICATION),
            "DATABASE_OWNER_URL": self.url(OWNER),
            "DJANGO_SETTINGS_MODULE": "tests.rolling_updates.later_release",
        }

    @contextmanager
    def session(self, user: str = OWNER) -> Iterator[psycopg.Connection]:
        with psycopg.connect(self.url(user), autocommit=True) as made:
            yield made

    @contextmanager
    def alias(self) -> Iterator[str]:
        """Its name for Django's `using`, as the superuser with foreign keys switched off: rows need no others."""
        connections.databases[self.name] = settings.DATABASES["default"] | {
            "NAME": self.name,
            "USER": "postgres",
            "HOST": str(self.servers.postgres.sockets),
            "OPTIONS": {"options": "-c session_replication_role=replica"},
        }
        try:
            yield self.name
        finally:
            connections[self.name].close()
            del connections[self.name], connections.databases[self.name]


@contextmanager
def released(servers: Session, template: str = RUNNING_RELEASE) -> Iterator[Database]:
    """A database as the running release has it, in which nobody else has a session; gone afterwards."""
    made = Database(f"released_{uuid4().hex[:8]}", servers)
    with psycopg.connect(servers.postgres.url("postgres"), autocommit=True) as admin:
        create_database(admin, made.name, OWNER, template=template)
        try:
            yield made
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(made.name)))
