"""`python -m config.local.trials TEST…`: runs tests with agents.testing, by the pytest settings of their own folder.

Those of the product are for its own tests: they turn each warning into an error. As a plugin of pytest, which the
conftest.py beside manage.py loads too, this starts the tests' database, and sets Django up before they are imported.
Holdpoint's own tests bring servers of their own, which are used instead; for any other test a PostgreSQL is started on
a folder that is removed afterwards, whatever DATABASE_URL says: a trial never writes into the database that somebody
works with.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.config.findpaths import locate_config

from config.local import servers
from config.local.servers import Postgres

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker

ROOT = Path(__file__).resolve().parent.parent.parent
# Durability off: the data does not outlive the tests.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
_servers: list[Servers] = []


class Servers:
    """The PostgreSQL of trials. Its address is known before it runs, so that Django can read its settings."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hp-trial-", dir="/tmp"))
        self.postgres = Postgres(self.folder / "data", self.folder / "pg", FAST)

    def environment(self) -> dict[str, str]:
        """Return the variables for the settings. Nothing listens at Redis's address: doorbells are for workers."""
        return {
            **servers.embedded_urls(self.postgres),
            "REDIS_URL": f"unix://{self.folder}/redis.sock",
            "HOLDPOINT_HOME": str(self.folder / "home"),
            "HOLDPOINT_SECRET_KEY": secrets.token_hex(32),
            "HOLDPOINT_LOG_FORMAT": "text",
            "HOLDPOINT_LOG_LEVEL": "WARNING",
        }

    def start(self) -> None:
        """Start the server and create the tables."""
        if os.geteuid() == 0:
            self.folder.chmod(0o711)  # the server's account passes through, and lists nothing
        with (self.folder / "postgres.log").open("wb") as log:
            self.postgres.start(log)
        servers.make_database(self.postgres)
        command = [sys.executable, "-m", "config.migrate"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
        if done.returncode:
            pytest.exit(f"The tables could not be made:\n{done.stdout}{done.stderr}", returncode=4)

    def stop(self) -> None:
        """Stop the server and remove its data."""
        self.postgres.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def pytest_pycollect_makemodule() -> None:
    """Set Django up before the first module of tests, which imports agents; do nothing if it is set up already."""
    from django.apps import apps

    if apps.ready:
        return
    _servers.append(Servers())
    os.environ.update(_servers[0].environment() | {"DJANGO_SETTINGS_MODULE": "config.settings"})
    import django

    django.setup()


@pytest.fixture(scope="session", autouse=True)
def database_of_trials(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Run the server while the tests run; none where the tests bring their own."""
    if not _servers:
        yield
        return
    from django.db import connections

    _servers[0].start()
    with django_db_blocker.unblock():
        yield
        for connection in connections.all(initialized_only=True):
            connection.close()
            if hasattr(connection, "close_pool"):
                connection.close_pool()


def pytest_unconfigure() -> None:
    """Stop the server and remove its data, whether or not a test ran."""
    while _servers:
        _servers.pop().stop()


def settings_for(words: Sequence[str]) -> list[str]:
    """Return pytest's options that keep the product's settings from the tests named by these words; none elsewhere."""
    paths = [Path(word.partition("::")[0]).absolute() for word in words if not word.startswith("-")]
    folders = [path if path.is_dir() else path.parent for path in paths if path.exists()] or [Path.cwd()]
    folder = Path(os.path.commonpath(folders))
    settings = locate_config(Path.cwd(), [folder])[1]
    return ["-c", os.devnull, "--rootdir", str(folder)] if settings == ROOT / "pyproject.toml" else []


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = (
        ""  # pytest's plugin for Django would read the settings before the URLs are known
    )
    sys.exit(pytest.main(["-p", "config.local.trials", *settings_for(sys.argv[1:]), *sys.argv[1:]]))
