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

import psycopg
import pytest
from playwright.sync_api import Browser, expect

from checkpoints.events.commit_order import Cursor
from config.local.servers import embedded_urls
from tests.harness.browser_checks import is_live
from tests.harness.postgresql_clusters import dumped_and_restored, migrated_copy, run_ahead, serving
from tests.harness.services import Service, manage, run
from tests.harness.session import Session, copied
from tests.harness.waiting import PATIENCE

pytestmark = pytest.mark.whole_database

StartWeb = Callable[..., tuple[Service, str]]
FORGED = """INSERT INTO checkpoints_event (xid, at, kind, subject, version, actor, actor_name, data)
VALUES ({xid}, {at}, 'x', 'x', 0, 'x', 'x', '{{}}')"""
HONEST = "pg_current_xact_id()::text::bigint + checkpoints_xid_offset()"


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
    with ExitStack() as stack:
        yield stack


def does(env: dict[str, str], *said: str) -> dict[str, Any]:
    done = run(sys.executable, "-m", "tests.checkpoints.events.database_acts", *said, env=env, within=PATIENCE * 2)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def managed(env: dict[str, str], *arguments: str) -> str:
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


def test_a_server_that_was_set_back_gives_no_number_twice(servers: Session, short: Path, stack: ExitStack) -> None:
    """What was read and linked to after the backup would have meant something else."""
    folder = {"HOLDPOINT_HOME": str(short / "home")}
    data = migrated_copy(servers, short / "data")
    with serving(data, short / "o") as server:
        env = embedded_urls(server) | folder
        does(env, "ask")
    snapshot = copied(data, short / "snapshot")
    with serving(data, short / "o") as server:
        lost = does(env, "ask")
        read = Cursor.parse(does(env, "newest")["cursor"])
    with serving(snapshot, short / "s") as server:
        env = embedded_urls(server) | folder
        managed(env, "restored", "--lost-ids", "10000")
        made = does(env, "ask")
        assert made["gate"] > lost["gate"]
        assert made["run"] > lost["run"]
        assert Cursor.parse(does(env, "newest")["cursor"]) > read


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


def test_only_the_owner_of_this_database_says_that_it_was_restored_and_by_numbers_that_a_server_gave(
    stocked: dict[str, str],
) -> None:
    """The offset overflowed, and nothing that needs it worked any more."""
    add_account(stocked)

    def refused(env: dict[str, str]) -> str:
        done = run(*manage("restored"), env=env, within=PATIENCE * 2)
        assert done.returncode != 0
        return done.stderr

    assert "Set DATABASE_OWNER_URL to the role that owns the tables." in refused(
        stocked | {"DATABASE_OWNER_URL": stocked["DATABASE_URL"]}
    )
    assert "lead to two databases" in refused({"DATABASE_OWNER_URL": stocked["DATABASE_OWNER_URL"]})
    with psycopg.connect(stocked["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(FORGED.format(xid=2**63 - 1, at="now()"))
        assert "which no server can have given it" in refused(stocked)
        assert owner.execute("SELECT checkpoints_xid_offset()").fetchall() == [(0,)]
        owner.execute("DELETE FROM checkpoints_event WHERE xid = %s", [2**63 - 1])
