"""`make run` on the real thing: what it starts, what it refuses, what it revives, what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psycopg
import pytest

from config.local import StackRefused, process, restarts, stack
from config.local.console import Console
from config.local.home import Home
from config.local.restarts import SETTLED, Revival
from config.local.servers import DATABASE, external_urls
from tests.config.local.started_stack import Stack, environment, started_before
from tests.harness.examples import first_alone
from tests.harness.services import free_port, run
from tests.harness.session import ROOT, Session
from tests.harness.waiting import PATIENCE, until

Start = Callable[..., Stack]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return start(home=None, seeded=False, **environment) -> Stack that is up; all are gone at the end."""
    stacks: list[Stack] = []

    def starting(**options: object) -> Stack:
        stacks.append(Stack(tmp_path / f"stack-{len(stacks)}", **options))  # type: ignore[arg-type]
        stacks[-1].wait()
        return stacks[-1]

    yield starting
    for each in stacks:
        if each.service.alive:
            each.interrupt()
        each.service.kill()


def refused(home: Path, **more: str) -> str:
    """Return the sentence with which the stack refuses to start."""
    done = run(sys.executable, "-m", "config.local", "run", env=environment(home, free_port(), **more))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip()


def inbox_of(stack: Stack, username: str) -> str:
    """Sign in as a person would, with the password that was printed; return the page that follows."""
    password = re.search(r"the password of each is (\S+)", stack.service.log)
    assert password is not None
    with httpx.Client(base_url=stack.base, follow_redirects=True, timeout=PATIENCE) as client:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get("/accounts/login/").text)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1], "login": username, "password": password[1]}
        answer = client.post("/accounts/login/", data=form, headers={"Referer": stack.base})
    assert answer.status_code == 200
    assert answer.url.path == "/", answer.text
    return answer.text


def test_a_stack_goes_on_in_its_home_revives_a_part_and_leaves_nothing_behind(
    start: Start, tmp_path: Path, servers: Session
) -> None:
    """A start that finds its tables; all that a first one does is in the test below."""
    stack = start(home=started_before(tmp_path / "home", servers))
    assert stack.get("/healthz").json() == {"status": "ok"}
    until(lambda: set(stack.get("/readyz").json()["parts"].values()) == {"ok"}, what=stack.get("/readyz").text)
    assert list_agents(stack).returncode == 0
    assert re.match(r"Holdpoint is already running on .* \(process \d+\)", refused(stack.home))
    starts_again(stack, "worker", "manage.py worker")
    ends_by_ctrl_c_and_leaves_nothing_behind(stack)
    is_wiped_by_a_reset(stack)


@pytest.mark.long
def test_a_first_start_seeds_an_inbox_and_recovers_when_its_supervisor_was_killed(start: Start, tmp_path: Path) -> None:
    # The home's path is too long for a unix socket's, which must not matter.
    stack = start(home=tmp_path / ("long" * 20) / ("path" * 20), seeded=True)
    until(lambda: stack.get("/readyz").status_code == 200, what=stack.get("/readyz").text)
    assert len(set(re.findall(r'href="(/gates/\d+/)', inbox_of(stack, "ann")))) >= 10
    takes_everything_with_it_when_the_supervisor_is_killed(stack)
    again = start(home=stack.home)
    assert again.get("/healthz").status_code == 200
    ends_by_ctrl_c_and_leaves_nothing_behind(again)


def list_agents(stack: Stack) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "manage.py", "agents", env=environment(stack.home, stack.port, PORT=""))


def starts_again(stack: Stack, name: str, command: str) -> None:
    stack.child(command).kill()
    stack.service.says(rf"The {name} process ended with exit code -9; it is started again in 1 s\.")
    until(partial(stack.children, command), what=f"another {name}")


def takes_everything_with_it_when_the_supervisor_is_killed(stack: Stack) -> None:
    stack.child("/postgres -D").kill()
    stack.service.process.kill()
    stack.service.process.wait()
    until(lambda: not stack.processes(), what="the rest of the stack to die")
    # What a machine that was switched off leaves: a lock that names a process which now is another.
    lock = stack.home / "postgres" / "postmaster.pid"
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")


def ends_by_ctrl_c_and_leaves_nothing_behind(stack: Stack) -> None:
    assert stack.interrupt() == 0
    assert stack.processes() == []
    assert stack.sockets() == []
    assert list_agents(stack).stderr == (
        f"No stack runs on {stack.home} (HOLDPOINT_HOME), and DATABASE_URL names no database. Start one with "
        "`make run`, or set HOLDPOINT_HOME to the folder of the one that runs.\n"
    )
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", stack.port))


def is_wiped_by_a_reset(stack: Stack) -> None:
    wiped = run(sys.executable, "-m", "config.local", "reset", env=environment(stack.home, stack.port))
    assert wiped.returncode == 0, wiped.stderr
    assert not stack.home.exists()


def test_the_parts_that_are_down_are_kept_for_readyz(tmp_path: Path) -> None:
    assert restarts.describe_parts_down(tmp_path) == ""
    now = time.monotonic()
    worker, beat = Revival(began=now), Revival(began=now)
    for _ in range(3):
        worker.ended(now)
    beat.ended(now)
    restarts.keep(tmp_path, {"worker": worker, "beat": beat})
    said = r"beat has ended, restart 1 in [01] s; worker has ended, restart 3 in [34] s"
    assert re.fullmatch(said, restarts.describe_parts_down(tmp_path)), restarts.describe_parts_down(tmp_path)
    for each in (worker, beat):
        each.started(now)
    restarts.keep(tmp_path, {"worker": worker, "beat": beat})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / restarts.FILE).write_text("{half")
    assert restarts.describe_parts_down(tmp_path) == ""


def test_the_pause_doubles_and_begins_anew_for_a_part_that_had_lived_for_a_minute() -> None:
    revival, now, pauses = Revival(), 1000.0, []
    for _ in range(7):
        pauses.append(revival.ended(now))
        now += pauses[-1]
        revival.started(now)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert revival.ended(now + SETTLED) == 1


def test_a_process_that_ends_says_why_where_the_stack_ends(tmp_path: Path) -> None:
    """The reason stood in the process's own log alone, above what the other processes said since."""
    home: Any = SimpleNamespace(path=tmp_path)
    own = stack.Stack(home, Console(), 0)
    own.start("sandbox", "-c", "print('The sandbox cannot start', flush=True); raise SystemExit(1)").process.wait()
    own.console.pumps["sandbox"].join()
    with pytest.raises(StackRefused) as ended:
        own.check_children()
    said = "The sandbox process ended with exit code 1; everything else is stopped. It said last:\n"
    assert str(ended.value) == f"{said}The sandbox cannot start"


@pytest.mark.long
def test_servers_of_ones_own_are_used_and_get_a_role_for_the_application(
    start: Start, servers: Session, tmp_path: Path
) -> None:
    with psycopg.connect(servers.postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE outside")
    url = servers.postgres.url("outside")
    home = started_before(tmp_path / "home", servers, database=False)
    stack = start(home=home, DATABASE_URL=url, REDIS_URL=servers.redis.url)
    assert not (stack.home / "postgres").exists()
    with psycopg.connect(url) as connection:
        owner = connection.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'checkpoints_run'").fetchone()
        users = connection.execute(
            "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND usename <> 'postgres'"
        ).fetchall()
    assert owner == ("postgres",)
    assert users == [("outside_app",)]
    assert stack.interrupt() == 0


def test_a_role_that_may_not_make_another_and_a_busy_port_are_told_what_to_set(
    tmp_path: Path, servers: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(servers.postgres.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE plain LOGIN")
    monkeypatch.setenv("DATABASE_URL", servers.postgres.url(DATABASE, "plain"))
    monkeypatch.delenv("DATABASE_OWNER_URL")
    with pytest.raises(StackRefused, match="set DATABASE_OWNER_URL to the role that owns the tables"):
        external_urls(Home(tmp_path, ROOT))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        own = stack.Stack(Home(tmp_path, ROOT), Console(), port)
        with pytest.raises(StackRefused) as refused:
            own.listen()
        own.stop()
    assert str(refused.value) == f"Port {port} is taken: stop what listens there, or set PORT to another one."


NOT_WORKING = [
    ({"REDIS_URL": "redis://127.0.0.1:1/0"}, "The Redis that REDIS_URL names does not answer: "),
    ({"HOLDPOINT_LEESE": "10"}, "HOLDPOINT_LEESE is no setting; is HOLDPOINT_LEASE meant?"),
    ({"DATABASE_URL": "postgres://x@127.0.0.1:1/x"}, "The PostgreSQL that DATABASE_URL names does not let this in: "),
]


@pytest.mark.parametrize(("given", "said"), first_alone(NOT_WORKING))
def test_what_cannot_work_is_said_before_anything_starts(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    sentence = refused(tmp_path, **given)
    assert sentence.startswith(said)
    assert sentence.count("\n") == said.count("\n")
    assert not (tmp_path / "postgres").exists()


def test_sigterm_while_starting_leaves_nothing_behind(tmp_path: Path) -> None:
    stack = Stack(tmp_path)
    until(lambda: (stack.home / "postgres" / "PG_VERSION").exists())
    stack.service.process.send_signal(signal.SIGTERM)
    assert stack.service.process.wait(PATIENCE) == 0, stack.service.log
    assert stack.processes() == []
    assert stack.sockets() == []


def test_a_part_that_the_system_cannot_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An OSError ended the whole stack, and the part was no longer among those to be started again."""
    home: Any = SimpleNamespace(path=tmp_path)
    own = stack.Stack(home, Console(), 0)
    own.start("sweeper", "-c", "").process.wait()
    real, full = process.spawn_process, [OSError(12, "Cannot allocate memory")]

    def spawn(*args: Any, **how: Any) -> Any:
        if full:
            raise full.pop()
        return real(*args, **how)

    monkeypatch.setattr(stack, "spawn_process", spawn)
    for _ in range(2):
        assert [child.name for child in own.children] == ["sweeper"]
        own.revive()  # it has ended
        assert own.revivals["sweeper"].due is not None
        own.revivals["sweeper"].due = 0.0
        own.revive()  # its pause is over
    assert not full
    (child,) = own.children
    child.process.wait()
    assert own.revivals["sweeper"].pause == 2 * restarts.FIRST
