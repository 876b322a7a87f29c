"""Events are read in an order that hides none, cannot be rewritten by the application, and are sealed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, transaction

from checkpoints import store
from checkpoints.actors import Actor
from checkpoints.audit import sealer
from checkpoints.events import commit_order, event_log
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Seal
from checkpoints.postgresql.privileges import APPEND_ONLY, CHANGING, KEPT
from checkpoints.values.canonical_json import decode_canonical
from tests.checkpoints.audit.sealed_events import forged, found
from tests.factories.stored_runs import STEP, begin, make_run
from tests.harness import horizon

pytestmark = pytest.mark.whole_database
INSERT = """INSERT INTO checkpoints_event (kind, subject, version, actor, actor_name, data)
VALUES ('test.said', %s, 0, 'system', '', '{}')"""


def say(text: str | None = None) -> str:
    subject = f"test:{secrets.token_hex(8)}"
    event_log.record("test.said", subject=subject, by=Actor("user:7", "Ann"), version=3, data={"n": 1}, text=text)
    return subject


def read_from(start: Cursor) -> list[str]:
    events, _ = commit_order.read_after(start)
    return [event.subject for event in events]


@pytest.fixture
def other() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"]) as made:
        yield made


def test_an_event_is_read_back_as_it_was_recorded_and_batches_neither_repeat_nor_skip() -> None:
    start = commit_order.newest_cursor()
    subject = say("words that may be erased")
    (event,) = [event for event in commit_order.read_after(start)[0] if event.subject == subject]
    assert (event.kind, event.actor, event.actor_name, event.version) == ("test.said", "user:7", "Ann", 3)
    assert decode_canonical(bytes(event.data)) == {"n": 1}
    assert bytes(event.words.text) == b"words that may be erased"
    start = commit_order.newest_cursor()
    with transaction.atomic():
        subjects = [say() for _ in range(7)]
    horizon.reached()
    read: list[str] = []
    at = start
    while batch := commit_order.read_after(at, limit=2)[0]:
        read += [event.subject for event in batch]
        at = Cursor.from_event(batch[-1])
    assert read == subjects
    assert Cursor.parse(str(at)) == at == commit_order.newest_cursor()


def test_a_transaction_held_open_across_a_later_commit_hides_no_event(other: psycopg.Connection) -> None:
    start = commit_order.newest_cursor()
    other.execute(INSERT, ["early"])
    late = say()
    assert commit_order.read_after(start)[1], "more is committed than may be read"
    assert late not in read_from(start), "the later event may not be read before the earlier one is known"
    other.commit()
    read = read_from(start)
    assert read.index("early") < read.index(late)
    assert commit_order.read_after(Cursor.from_event(commit_order.read_after(start)[0][-1])) == ([], False)
    horizon.reached()
    start = commit_order.newest_cursor()
    other.execute(INSERT, ["never"])
    late = say()
    other.rollback()
    assert read_from(start) == [late]


def test_what_is_no_cursor_is_refused() -> None:
    for text in ("", "7", "1.2.3", "-1.2", "1.x", "1.9223372036854775808", "\u0663.\u0661"):
        with pytest.raises(ValueError, match="no cursor"):
            Cursor.parse(text)


def test_the_applications_role_cannot_rewrite_the_past_and_may_use_every_other_table() -> None:
    for verb in ("UPDATE checkpoints_event SET id = id", "DELETE FROM checkpoints_seal", "TRUNCATE checkpoints_gap"):
        with pytest.raises(ProgrammingError, match="permission denied"), connection.cursor() as raw:
            raw.execute(verb)
    with connection.cursor() as raw:
        raw.execute(
            """SELECT relname, has_table_privilege(oid, 'SELECT'), has_table_privilege(oid, 'INSERT'),
            has_table_privilege(oid, 'UPDATE'), has_table_privilege(oid, 'DELETE')
            FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"""
        )
        rights = {name: given for name, *given in raw.fetchall()}
    for table in APPEND_ONLY:
        assert rights.pop(table) == [True, True, False, False]
    for table in KEPT:
        assert rights.pop(table) == [True, True, table not in CHANGING, False]
    assert len(rights) > 10
    assert [name for name, given in rights.items() if not all(given)] == []


def sealed() -> Seal:
    say("a secret")
    make_run(n=0)
    horizon.reached()
    seals = []
    while seal := sealer.seal_once():
        seals.append(seal)
    return seals[-1]


def test_a_seal_covers_what_settled_and_the_heads_of_its_runs() -> None:
    seal = sealed()
    run = make_run(n=1)
    horizon.reached()
    assert sealer.seal_once() is not None
    newest = Seal.objects.latest("pk")
    assert bytes(newest.previous or b"") == bytes(seal.digest)
    assert str(run.pk) in decode_canonical(bytes(newest.heads))
    assert sealer.seal_once() is None
    assert found() == []
    lines = [json.loads(line) for line in sealer.export_path().read_text().splitlines()]
    assert lines[-1]["digest"] == bytes(newest.digest).hex()


def test_one_sealer_at_a_time_leaves_saved_checkpoints_to_their_runs_chain(other: psycopg.Connection) -> None:
    _, claim, head = begin(n=0)
    sealed()
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert sealer.seal_once() is None
    other.execute("SELECT pg_advisory_xact_lock(%s)", [sealer.LOCK])
    say()
    assert sealer.seal_once() is None
    other.rollback()
    horizon.reached()
    assert sealer.seal_once() is not None


def test_the_whole_check_covers_the_seals() -> None:
    """Other tests leave tampered checkpoints in this database: only what is said of this seal counts."""
    seal = sealed()
    assert f"seal {seal.pk}:" not in everything_found()
    with forged(f"UPDATE checkpoints_seal SET count = count + 1 WHERE id = {seal.pk}"):
        assert f"seal {seal.pk}:" in everything_found()


def everything_found() -> str:
    """What `verify` says when it looks at all there is."""
    said = io.StringIO()
    with contextlib.suppress(CommandError):
        call_command("verify", stderr=said)
    return said.getvalue()


def test_a_torn_line_of_the_export_is_a_finding_and_ends_no_check() -> None:
    """A half-written last line, as a crash leaves it, raised: nothing at all was verified any more."""
    say()
    sealed()
    path = sealer.export_path()
    whole = path.read_bytes()
    try:
        path.write_bytes(whole + b'{"seal": 9, "dig\xff\n[]\n')
        said = found()
    finally:
        path.write_bytes(whole)
    number = whole.count(b"\n") + 1
    assert said == [f"line {n} of seals.jsonl: cannot be read" for n in (number, number + 1)]
