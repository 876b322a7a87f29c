from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from config.local.servers import Postgres
from tests.harness.session import FAST, Session


@pytest.fixture
def server(servers: Session) -> Iterator[Postgres]:
    """Return a PostgreSQL of the test's own, migrated, that it may stop."""
    made = Postgres(servers.folder / "apart", servers.folder / "pg-apart", FAST)
    subprocess.run(["/bin/cp", "-a", servers.migrated.data, made.data], check=True)  # with its owner
    made.start(servers.log("apart"))
    yield made
    made.stop()
    shutil.rmtree(made.data)
