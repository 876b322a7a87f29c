"""A database that was restored goes on where it was: events are read and sealed, and no id or number comes twice."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from playwright.sync_api import Browser, expect

from checkpoints.events.commit_order import Cursor
from config.local.servers import DATABASE, embedded_urls, make_database
from tests.chaos.outside import Outside
from tests.chaos.shared_files import SENDS
from tests.harness.browser_checks import is_live
from tests.harness.postgresql_clusters import dumped_and_restored, migrated_copy, run_ahead, serving
from tests.harness.services import IMPATIENT, Service, free_port, manage, run, wait_for_http
from tests.harness.session import Session, copied
from tests.harness.waiting import PATIENCE, until

pytestmark = pytest.mark.whole_database

StartWeb = Callable[..., tuple[Service, str]]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name, which sockets need."""
    with tempfile.TemporaryDirectory(prefix="hpr-", dir="/tmp", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)  # the server's account passes through
        yield Path(made)


@pytest.fixture(scope="module")
def stocked(servers: Session) -> Iterator[dict[str, str]]:
    """The environment of a migrated database on a server of its own, which no test restores."""
    with tempfile.TemporaryDirectory(prefix="hpr-", dir="/tmp", ignore_cleanup_errors=True) as made:
        short = Path(made)
        short.chmod(0o711)
        with serving(migrated_copy(servers, short / "data"), short / "s") as server:
            yield embedded_urls(server) | {"HOLDPOINT_HOME": str(short / "home")}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What is started here ends with the test."""
    with ExitStack() as stack:
        yield stack


def does(env: dict[str, str], *said: str) -> dict[str, Any]:
    """Let something happen in a database."""
    done = run(sys.executable, "-m", "tests.checkpoints.events.database_acts", *said, env=env, within=PATIENCE * 2)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def managed(env: dict[str, str], *arguments: str) -> str:
    """What a command said, which has to end well."""
    done = run(*manage(*arguments), env=env, within=PATIENCE * 2)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def add_account(env: dict[str, str]) -> None:
    """Let the database be one that was used."""
    with psycopg.connect(env["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO auth_user (username, password, is_superuser, first_name, last_name, email, is_staff,"
            " is_active, date_joined) VALUES ('root', '', true, '', '', '', true, true, now()) ON CONFLICT DO NOTHING"
        )


def newest_ids(env: dict[str, str]) -> tuple[int, int, int]:
    """The greatest transaction of an event, and the greatest ids of a run and a gate."""
    with psycopg.connect(env["DATABASE_OWNER_URL"]) as connection:
        found = connection.execute(
            "SELECT (SELECT max(xid) FROM checkpoints_event), (SELECT max(id) FROM checkpoints_run),"
            " (SELECT max(id) FROM approvals_gate)"
        ).fetchone()
    assert found is not None
    return found


@pytest.mark.long
def test_a_dump_in_a_new_server_is_live_and_its_audit_clean(
    servers: Session, short: Path, stack: ExitStack, start_web: StartWeb, browser: Browser
) -> None:
    """New events lay before all stored ones, so no page, program or seal ever came to them."""
    folder = {"HOLDPOINT_HOME": str(short / "home")}
    old = stack.enter_context(serving(migrated_copy(servers, short / "old"), short / "o"))
    run_ahead(old, 20_000)
    before = embedded_urls(old) | folder
    asked = does(before, "ask")
    read = Cursor.parse(does(before, "newest")["cursor"])
    new = stack.enter_context(serving(short / "new", short / "n"))
    dumped_and_restored(old, new, short)
    after = embedded_urls(new) | folder

    refused = run(*manage("sweeper", "--once"), env=after)
    assert refused.returncode != 0
    assert "run `python manage.py restored` before" in refused.stderr
    assert "Restored up to event" in managed(after, "restored")
    does(after, "newest")
    assert "are as they were written" in managed(after, "audit", "verify")

    _, base = start_web(after)
    context = browser.new_context(base_url=base)
    context.add_cookies([{"name": "sessionid", "value": asked["session"], "url": base}])
    page = context.new_page()
    page.goto(f"/gates/{asked['gate']}/")
    is_live(page)
    does(after, "approve", str(asked["gate"]), str(asked["person"]))
    expect(page.get_by_text("Approved").first).to_be_visible()
    context.close()
    assert Cursor.parse(does(after, "newest")["cursor"]) > read
    assert "are as they were written" in managed(after, "audit", "verify")


def test_a_database_into_which_nothing_was_restored_is_left_as_it_is(
    short: Path, stack: ExitStack, stocked: dict[str, str]
) -> None:
    """Without tables it ended in a traceback, and a new database was "Restored up to event 2": migrating writes two."""
    bare = stack.enter_context(serving(short / "new", short / "n"))
    make_database(bare)
    done = run(*manage("restored"), env=embedded_urls(bare) | {"HOLDPOINT_HOME": str(short / "home")})
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: Nothing was restored into this database: it has no tables.")
    with psycopg.connect(stocked["DATABASE_OWNER_URL"]) as owner:
        owner.execute("DELETE FROM auth_user")
        before = owner.execute("SELECT public.checkpoints_xid_offset()").fetchone()
    done = run(*manage("restored"), env=stocked)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith("CommandError: Nothing was restored into this database: it holds no account and no")
    with psycopg.connect(stocked["DATABASE_OWNER_URL"]) as owner:
        assert owner.execute("SELECT public.checkpoints_xid_offset()").fetchone() == before


def test_a_server_that_was_set_back_gives_no_number_twice(servers: Session, short: Path, stack: ExitStack) -> None:
    """What was read and linked to after the backup would have meant something else."""
    folder = {"HOLDPOINT_HOME": str(short / "home")}
    data = migrated_copy(servers, short / "data")
    with serving(data, short / "o") as server:
        env = embedded_urls(server) | folder
        does(env, "ask")
    snapshots = [copied(data, short / name) for name in ("first", "second")]
    with serving(data, short / "o") as server:
        lost = [does(env, "ask") for _ in range(3)][-1]
        read = Cursor.parse(does(env, "newest")["cursor"])
    for snapshot, lost_ids in zip(snapshots, ("10000", "30000"), strict=True):  # the same backup, tried twice
        with serving(snapshot, short / "s") as server:
            env = embedded_urls(server) | folder
            managed(env, "restored", "--lost-ids", lost_ids)
            made = does(env, "ask")
            assert made["gate"] > lost["gate"]
            assert made["run"] > lost["run"]
            at = Cursor.parse(does(env, "newest")["cursor"])
            assert at > read
            lost, read = made, at


def test_what_was_done_after_the_backup_is_asked_for_again_by_its_key_and_done_once(
    servers: Session, short: Path, stack: ExitStack
) -> None:
    port = free_port()
    home, sends = short / "home", short / "sends"
    sandbox = Service(
        "sandbox",
        [sys.executable, "-m", "agents.examples.sandbox", "--port", str(port), "--data", str(home / "sandbox")],
        short / "logs", {"HOLDPOINT_HOME": str(home)},
    )  # fmt: skip
    stack.callback(sandbox.kill)
    wait_for_http(sandbox, f"http://127.0.0.1:{port}/ledger")
    provider = {
        "HOLDPOINT_HOME": str(home), "HOLDPOINT_AGENTS": "tests.chaos.agents.errand_agent", SENDS: str(sends),
        "SANDBOX_URL": f"http://127.0.0.1:{port}",
    }  # fmt: skip
    data = migrated_copy(servers, short / "data")
    with serving(data, short / "o") as server:
        begun = does(embedded_urls(server) | provider, "begin", "frames")
        assert begun["status"] == "waiting"
    snapshot = copied(data, short / "snapshot")
    with serving(data, short / "o") as server:
        before = does(embedded_urls(server) | provider, "finish", str(begun["run"]))
    with serving(snapshot, short / "s") as server:
        env = embedded_urls(server) | provider
        managed(env, "restored")
        after = does(env, "finish", str(begun["run"]))
        assert "are as they were written" in managed(env, "audit", "verify")
    assert (before["status"], after["status"]) == ("completed", "completed")
    assert [after["state"][name] for name in ("ordered", "charged")] == [
        before["state"][name] for name in ("ordered", "charged")
    ]
    outside = Outside(home, sends)
    assert sorted(outside.requests().values()) == [2, 2]  # each was asked for once more, under its key
    assert sorted(entry["kind"] for entry in outside.entries()) == ["charge", "orders"]


FORGED = """INSERT INTO checkpoints_event (xid, at, kind, subject, version, actor, actor_name, data)
VALUES ({xid}, {at}, 'x', 'x', 0, 'x', 'x', '{{}}')"""
HONEST = "pg_current_xact_id()::text::bigint + checkpoints_xid_offset()"


@pytest.mark.parametrize(
    ("xid", "at"),
    [("9223372036854775807", "now()"), (f"{HONEST} - 1", "now()"), (HONEST, "'infinity'"), (HONEST, "'20000-01-01'")],
)
def test_the_application_writes_no_event_of_another_transaction_or_time(xid: str, at: str) -> None:
    """One such row stopped every start, or everybody who reads events."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as made:
        with pytest.raises(psycopg.errors.CheckViolation, match="of the transaction that writes it"):
            made.execute(FORGED.format(xid=xid, at=at))
        made.rollback()
        made.execute(FORGED.format(xid=HONEST, at="clock_timestamp()"))
        made.rollback()


def test_a_number_that_no_server_gave_is_named_and_nothing_is_raised(stocked: dict[str, str]) -> None:
    """The offset overflowed, and nothing that needs it worked any more."""
    add_account(stocked)
    with psycopg.connect(stocked["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(FORGED.format(xid=2**63 - 1, at="now()"))
        done = run(*manage("restored"), env=stocked, within=PATIENCE * 2)
        assert done.returncode != 0
        assert "which no server can have given it" in done.stderr
        assert owner.execute("SELECT checkpoints_xid_offset()").fetchall() == [(0,)]
        owner.execute("DELETE FROM checkpoints_event WHERE xid = %s", [2**63 - 1])


def test_an_owners_url_of_another_database_is_refused(stocked: dict[str, str]) -> None:
    done = run(*manage("restored"), env={"DATABASE_OWNER_URL": stocked["DATABASE_OWNER_URL"]}, within=PATIENCE * 2)
    assert done.returncode != 0
    assert "lead to two databases" in done.stderr


def test_a_sweeper_that_started_while_postgresql_was_away_ends_on_a_restored_one(
    servers: Session, short: Path, stack: ExitStack, start_service: Callable[..., Service]
) -> None:
    data = migrated_copy(servers, short / "data")
    with serving(data, short / "s") as server:
        env = embedded_urls(server) | {"HOLDPOINT_HOME": str(short / "home")}
        with psycopg.connect(env["DATABASE_OWNER_URL"]) as owner:
            owner.execute(FORGED.format(xid=2**40, at="now()"))
    sweeper = start_service("sweeper", manage("sweeper"), IMPATIENT | env)
    sweeper.says(r"sweeper\.failed")
    stack.enter_context(serving(data, short / "s"))
    until(lambda: not sweeper.alive, what="the sweeper ends")
    assert "run `python manage.py restored` before" in sweeper.log


def test_a_web_process_that_has_read_further_than_its_server_counts_says_so_and_ends(
    servers: Session, short: Path, stack: ExitStack, start_web: StartWeb
) -> None:
    """A standby that took over had not received everything: its web processes heard nothing more, and said nothing."""
    data = migrated_copy(servers, short / "data")
    standby = copied(data, short / "standby")
    with serving(data, short / "s") as server:
        run_ahead(server, 5_000)
        env = embedded_urls(server) | {"HOLDPOINT_HOME": str(short / "home")}
        web, base = start_web(env)
        does(env, "ask")
        until(
            lambda: 'kind="gate.opened"' in httpx.get(f"{base}/metrics", timeout=60).text, what="the gate is heard of"
        )
    stack.enter_context(serving(standby, short / "s"))
    web.process.wait(PATIENCE)
    assert "run `python manage.py restored` before" in web.log


def test_only_the_owner_can_say_that_a_database_was_restored(stocked: dict[str, str]) -> None:
    add_account(stocked)
    env = stocked | {"DATABASE_OWNER_URL": stocked["DATABASE_URL"]}
    done = run(*manage("restored"), env=env, within=PATIENCE * 2)
    assert done.returncode != 0
    assert "Set DATABASE_OWNER_URL to the role that owns the tables." in done.stderr
    assert DATABASE in stocked["DATABASE_URL"]
