"""A database of a test's own, on the session's server, with the tables of the running release."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from uuid import uuid4

import psycopg
from django.conf import settings
from django.db import connections
from psycopg import sql

from config.local.servers import APPLICATION, OWNER, create_database
from tests.harness.services import run
from tests.harness.session import Session

from .released import RELEASED

_TO_THE_RELEASE = "; ".join(
    [
        "import django",
        "from django.core.management import call_command",
        "django.setup()",
        *(f"call_command('migrate', {app!r}, {name!r}, verbosity=0)" for app, name in RELEASED.items()),
    ]
)


@dataclass
class Database:
    """One database: its name, and the server it is on."""

    name: str
    servers: Session

    def url(self, user: str) -> str:
        """Return its URL for a role."""
        return self.servers.postgres.url(self.name, user)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process needs to migrate it."""
        return {
            "DATABASE_URL": self.url(APPLICATION),
            "DATABASE_OWNER_URL": self.url(OWNER),
            "DJANGO_SETTINGS_MODULE": "tests.rolling_updates.later_release",
        }

    @contextmanager
    def session(self, user: str = OWNER) -> Iterator[psycopg.Connection]:
        """A session in it, which commits by itself."""
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


def released(servers: Session) -> AbstractContextManager[Database]:
    """A database as the running release has it; gone afterwards."""
    return copy_of(_migrated(servers))


@contextmanager
def copy_of(template: Database) -> Iterator[Database]:
    """Another database with the same rows, in which nobody else has a session; gone afterwards."""
    made = Database(f"released_{uuid4().hex[:8]}", template.servers)
    with psycopg.connect(made.servers.postgres.url("postgres"), autocommit=True) as admin:
        create_database(admin, made.name, OWNER, template=template.name)
        try:
            yield made
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(made.name)))


@cache
def _migrated(servers: Session) -> Database:
    """What each of them is copied from: migrating takes longer than a test."""
    made = Database("released", servers)
    with psycopg.connect(servers.postgres.url("postgres"), autocommit=True) as admin:
        create_database(admin, made.name, OWNER)
    owner = made.environment | {"DATABASE_URL": made.url(OWNER), "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = run(sys.executable, "-c", _TO_THE_RELEASE, env=owner, within=300)
    assert done.returncode == 0, done.stderr
    return made
