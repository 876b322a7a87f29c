"""`make run` and `make reset` act on folders of Holdpoint's alone.

`make reset` deleted whatever folder held a file `lock`, and `make run` took the rights of everybody else away from, and
wrote into, whatever folder HOLDPOINT_HOME named.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import suppress
from io import BytesIO
from itertools import product
from pathlib import Path
from unittest import mock

import pytest

from config.local import StackRefused
from config.local.console import Console
from config.local.home import MARK, Home
from tests.config.local.started_stack import environment
from tests.harness.services import free_port, run
from tests.harness.session import ROOT


def home_before(path: Path) -> Path:
    """Make what a start of the version before left: no mark, and the files that each start wrote first."""
    path.mkdir(mode=0o700)
    (path / "lock").write_text("4711")
    (path / "secret-key").write_text(secrets.token_hex(24))
    (path / "secret-key").chmod(0o600)
    (path / "postgres").mkdir()
    (path / "beat-schedule").touch()
    return path


def look(folder: Path) -> dict[str, tuple[int, str]]:
    """Return all that a command could change: each path with its rights, and what is in it."""
    paths = [folder, *folder.rglob("*")]
    return {str(path): (path.lstat().st_mode, path.read_text() if path.is_file() else "") for path in paths}


def test_a_folder_of_somebody_elses_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "my papers"
    folder.mkdir(mode=0o755)
    (folder / "lock").write_text("of another program")
    (folder / "thesis.txt").write_text("years of work")
    sentence = (
        f"{folder} is not marked as a home of Holdpoint's and holds lock, thesis.txt: nothing in it was touched. Set "
        "HOLDPOINT_HOME to a new or an empty folder. If `make reset` may delete all that is in this one, mark it: "
        f"touch '{folder}/.holdpoint-home'"
    )
    assert not_taken(folder) == not_taken(folder, new=False) == sentence


@pytest.mark.parametrize("there", [True, False])
def test_an_empty_folder_or_a_new_one_becomes_a_home_and_a_reset_deletes_it(there: bool, tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "home", ROOT)
    if there:
        home.path.mkdir(parents=True)
        never = not_taken(home.path, new=False)
        assert never == f"{home.path} is not marked as a home of Holdpoint's: nothing in it was touched."
    with home.locked():
        assert (home.path / MARK).read_text().startswith("`make run` keeps its data in this folder")
        assert home.path.stat().st_mode & 0o066 == 0
    (home.path / "postgres").mkdir()
    with home.locked(new=False):
        home.delete()
    assert not home.path.exists()


def test_a_home_of_before_is_marked_once_goes_on_and_is_deleted_by_a_reset(tmp_path: Path) -> None:
    home = Home(home_before(tmp_path / ".holdpoint"), ROOT)
    with home.locked():
        assert (home.path / MARK).is_file()
    (home.path / "of an agent").touch()
    with home.locked():
        assert (home.path / "secret-key").is_file()
    with home.locked(new=False):
        home.delete()
    assert not home.path.exists()
    papers = home_before(tmp_path / "papers")  # the version before started in any folder
    (papers / "thesis.txt").write_text("years of work")
    assert "holds thesis.txt: nothing in it was touched" in not_taken(papers)


def not_taken(folder: Path, *, new: bool = True) -> str:
    before = look(folder)
    with pytest.raises(StackRefused) as refused, Home(folder, ROOT).locked(new=new):
        pass
    assert look(folder) == before
    return str(refused.value)


def test_a_link_is_refused_with_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home_before(tmp_path / "there"))
    said = f"{tmp_path}/link is a link: set HOLDPOINT_HOME to the folder itself, {tmp_path}/there."
    assert not_taken(tmp_path / "link") == not_taken(tmp_path / "link", new=False) == said


def test_the_checkout_a_persons_home_and_all_above_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person, checkout = tmp_path / "people" / "ann", tmp_path / "code" / "holdpoint"
    for folder in (person, checkout):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    done = run(sys.executable, "-m", "config.local", "reset", env=environment(Path("~"), free_port()))
    assert (done.returncode, "is or holds" in done.stderr) == (1, True)
    for path, marked in product((person, person.parent, checkout, checkout.parent, tmp_path), (False, True)):
        if marked:
            (path / MARK).touch()  # it can be copied
        refusal = f"{path} is or holds .*: set HOLDPOINT_HOME to a folder of its own"
        with pytest.raises(StackRefused, match=refusal), Home(path, checkout).locked(new=not marked):
            pass
        assert not (path / "lock").exists()


def test_a_link_among_the_homes_files_is_not_written_through_and_anothers_folder_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had write access to the folder had a file of this account overwritten, or emptied."""
    (precious := tmp_path / "thesis.txt").write_text("years of work")
    for name in (MARK, "lock"):
        home = Home(tmp_path / f"with {name}", ROOT)
        home.path.mkdir()
        (home.path / MARK).touch()
        (home.path / name).unlink(missing_ok=True)
        (home.path / name).symlink_to(precious)
        with pytest.raises(StackRefused, match=f"{name} is a link: remove it"), home.locked():
            pass
        assert precious.read_text() == "years of work"
    path = tmp_path / "home"
    path.mkdir(mode=0o755)
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    assert "belongs to another account" in not_taken(path)


def test_a_reset_that_was_interrupted_can_be_repeated(tmp_path: Path) -> None:
    """The mark went with the rest, in any order, and what was left was nobody's."""
    home = Home(tmp_path / "home", ROOT)
    with home.locked():
        (home.path / "run").mkdir()
        (home.path / "run" / "socket").touch()
        with mock.patch("shutil.rmtree", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            home.delete()
    with home.locked(new=False):
        home.delete()
    assert not home.path.exists()


SERVERS = b"""2026-11-29 13:29:53.512 UTC [3196] FATAL:  the database system is starting up
3203:M 29 Nov 2026 13:29:53.784 # WARNING Memory overcommit must be enabled!
"""
WORKER = b"""13:31:27 step.started run=1 step=read_shop
13:31:28 WARNING my_agent cannot be imported: SyntaxError
13:31:29 ERROR step.failed run=1
    ValueError: of an author
13:31:30 audit.sealed seal=1
"""


def test_a_start_that_is_well_shows_warnings_of_the_application_alone_and_one_that_fails_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def pumped(console: Console, name: str, said: bytes) -> list[str]:
        console.pump(name, BytesIO(said))
        console.pumps[name].join()
        return [line.partition(" | ")[2] for line in capsys.readouterr().out.splitlines()]

    console = Console()
    with console.start():
        assert pumped(console, "postgres", SERVERS) == []
        assert pumped(console, "worker", WORKER) == WORKER.decode().splitlines()[1:4]
    assert pumped(console, "postgres", SERVERS) == SERVERS.decode().splitlines(), "after the start all is shown"
    console = Console()
    with suppress(StackRefused), console.start():
        pumped(console, "postgres", SERVERS)
        raise StackRefused("Bringing the tables up to date failed with exit code 1.")
    assert [line.partition(" | ")[2] for line in capsys.readouterr().out.splitlines()] == SERVERS.decode().splitlines()
    assert console.last_words("postgres") == SERVERS.decode().strip()
