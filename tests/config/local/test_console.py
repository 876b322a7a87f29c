"""The first screen of `make run`: a line a part, then the address; all that was said where the start fails.

It held PostgreSQL's FATAL and ERROR of a start that was well, and the address stood above two hundred lines of runs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest

from config.local import StackRefused, install
from config.local.console import Console
from config.local.servers import Postgres
from tests.harness.session import FAST, quick_folder

SERVERS = b"""2026-11-29 13:29:53.512 UTC [3196] FATAL:  the database system is starting up
2026-11-29 13:31:10.792 UTC [3842] ERROR:  duplicate key value violates unique constraint
3203:M 29 Nov 2026 13:29:53.784 # WARNING Memory overcommit must be enabled!
"""
WORKER = b"""13:31:27 step.started run=1 step=read_shop
13:31:28 WARNING my_agent cannot be imported: SyntaxError
13:31:29 ERROR step.failed run=1
    Traceback (most recent call last):
    ValueError: of an author
13:31:30 step.returned run=1
"""
SEALED = b"13:31:07 audit.sealed seal=1\n"


def pumped(console: Console, name: str, said: bytes) -> None:
    console.pump(name, BytesIO(said))
    console.pumps[name].join()


def fail(console: Console) -> None:
    pumped(console, "postgres", SERVERS)
    raise StackRefused("Bringing the tables up to date failed with exit code 1.")


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.partition(" | ")[2] for line in capsys.readouterr().out.splitlines()]


def test_a_start_that_is_well_shows_warnings_of_the_application_alone(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    with console.start():
        pumped(console, "postgres", SERVERS)
        pumped(console, "worker", WORKER)
        console.say("Bringing the tables up to date: 2 s")
    lines = WORKER.decode().splitlines()
    assert shown(capsys) == [*lines[1:5], "Bringing the tables up to date: 2 s"]
    pumped(console, "postgres", SERVERS)
    assert shown(capsys) == SERVERS.decode().splitlines(), "after the start everything is shown"


def test_a_start_that_fails_shows_all_that_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    with pytest.raises(StackRefused), console.start():
        fail(console)
    assert shown(capsys) == SERVERS.decode().splitlines()
    assert console.last_words("postgres") == SERVERS.decode().strip()


def test_seals_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    pumped(Console(), "sweeper", SEALED + WORKER.splitlines(keepends=True)[0])
    assert shown(capsys) == ["13:31:27 step.started run=1 step=read_shop"]


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir=quick_folder()))
    folder.chmod(0o711)
    server = Postgres(folder / "data", folder / "pg", FAST)
    yield server
    server.stop()
    shutil.rmtree(folder)


def test_a_new_postgresql_logs_no_error(postgres: Postgres) -> None:
    """It was asked by a connection whether it was up, and logged each that came too early as FATAL."""
    log = postgres.data.parent / "log"
    with log.open("wb") as out:
        postgres.start(out)
    assert postgres.says_ready()
    assert "FATAL" not in log.read_text()
    assert "ready to accept connections" in log.read_text()


@pytest.mark.parametrize(
    ("said", "installed", "progress"),
    [
        ("", 0, "fetched 0 of 3 packages"),
        ("Processing /a.whl\n  Downloading a\nRequirement already satisfied: b==1\n", 2, "fetched 2 of 3 packages"),
        ("Collecting a==1\nInstalling collected packages: c, b\n", 2, "installed 2 of 3 packages"),
        ("Installing collected packages: c, b\n", 5, "installed 3 of 3 packages"),
    ],
)  # fmt: skip
def test_pips_progress_says_of_how_many(said: str, installed: int, progress: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(said)
    for number in range(installed):
        (tmp_path / f"lib/python3.11/site-packages/p{number}.dist-info").mkdir(parents=True)
    assert install.progress(tmp_path, tmp_path / "log", 3) == progress


def test_packages_for_other_systems_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(
        "# a list\na==1 \\\n    --hash=sha256:00\n    # via b\n"
        "b==2 ; sys_platform == 'win32' \\\n    --hash=sha256:00\nc==3 ; python_full_version >= '3.11' \\\n"
    )
    assert install.listed(sys.executable, tmp_path / "list.txt") == 2


def test_an_installation_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pip(subprocess.Popen[bytes]):
        """It is not done when it is first asked."""

        def __init__(self) -> None:
            super().__init__(["true"])
            self.asked = 0

        def wait(self, timeout: float | None = None) -> int:
            self.asked += 1
            if self.asked == 1:
                raise subprocess.TimeoutExpired("pip", timeout or 0)
            return super().wait()

    assert install.wait(Pip(), "Installing list.txt into .venv", lambda: "fetched 1 of 3 packages") == 0
    assert capsys.readouterr().err == "Installing list.txt into .venv: 0 s, fetched 1 of 3 packages\n"
