"""The stack's PostgreSQL and Redis: embedded, or those that DATABASE_URL and REDIS_URL name."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit

import psycopg
import redis
from psycopg import sql

from config.local.errors import StackRefused
from config.local.home import Home
from config.local.servers import roles
from config.local.servers.postgres import Postgres
from config.local.servers.redis_server import Redis

DATABASE = "holdpoint"
OWNER = "holdpoint_owner"
APPLICATION = "holdpoint_app"


def embedded_urls(postgres: Postgres) -> dict[str, str]:
    """Return the URLs of an embedded server's database, for the application and for its owner."""
    return {
        "DATABASE_URL": postgres.url(DATABASE, APPLICATION),
        "DATABASE_OWNER_URL": postgres.url(DATABASE, OWNER),
    }


def make_database(postgres: Postgres) -> None:
    """Make the two roles and the database of an embedded server."""
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        roles.create(connection, OWNER)
        roles.create(connection, APPLICATION)
        roles.create_database(connection, DATABASE, OWNER)


def external_urls(home: Home) -> dict[str, str]:
    """Return the URLs of the server that DATABASE_URL names, with a role of the application's own.

    Where DATABASE_OWNER_URL is set too, both are taken as they are. Raises StackRefused where the server does not
    answer, or where the URL's role may not make another.
    """
    url = os.environ["DATABASE_URL"]
    owner = os.environ.get("DATABASE_OWNER_URL", "")
    for name, value in {"DATABASE_URL": url, "DATABASE_OWNER_URL": owner}.items():
        if value:
            connected(name, value).close()
    if owner:
        return {"DATABASE_URL": url, "DATABASE_OWNER_URL": owner}
    parts = urlsplit(url)
    role = f"{unquote(parts.path.lstrip('/'))}_app"
    password = home.secret("database-password")
    with connected("DATABASE_URL", url) as connection:
        try:
            roles.create(connection, role, password)
            grant = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
            connection.execute(grant.format(sql.Identifier(connection.info.dbname), sql.Identifier(role)))
        except psycopg.errors.InsufficientPrivilege:
            raise StackRefused(
                f"The role of DATABASE_URL may not make the application's role {role}: set DATABASE_OWNER_URL to the "
                "role that owns the tables, and DATABASE_URL to one that owns nothing."
            ) from None
    where = parts.netloc.rpartition("@")[2]
    application = parts._replace(netloc=f"{quote(role)}:{quote(password)}@{where}").geturl()
    return {"DATABASE_URL": application, "DATABASE_OWNER_URL": url}


def connected(name: str, url: str) -> psycopg.Connection:
    """Return a connection in autocommit. Raises StackRefused, with the server's own words, where there is none."""
    try:
        return psycopg.connect(url, connect_timeout=5, autocommit=True)
    except psycopg.Error as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise StackRefused(f"The PostgreSQL that {name} names does not let this in: {words}") from None


def check_redis(url: str) -> None:
    """Raise StackRefused where the Redis that REDIS_URL names does not answer."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise StackRefused(f"The Redis that REDIS_URL names does not answer: {error}") from None


def embedded(home: Home) -> tuple[Postgres | None, Redis | None]:
    """Return the servers to start here: none that the environment names."""
    sockets = home.sockets()
    postgres = None if os.environ.get("DATABASE_URL") else Postgres(home.path / "postgres", sockets / "postgres")
    server = None if os.environ.get("REDIS_URL") else Redis(home.path / "redis", sockets / "redis.sock")
    return postgres, server
