"""load(save(x)) is x, over arbitrary states and writes; digests know values, and neither history nor encoding.

A database written before lists had digests over stretches: it is read, verified, and goes on as it began.

first_format.copy says how it was made: a run with splices, large items, long integers, anchors, sealed stretches that
are folded, a rewind, and a prune that left gaps; its fork; and a run that nothing was removed from.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_all, verify_run
from checkpoints.errors import NotVerified
from checkpoints.layout import parts
from checkpoints.layout.rows import CheckpointRow, pages
from checkpoints.models import Checkpoint, Gap, Hold, Run
from checkpoints.postgresql import xid_offset
from checkpoints.store import Snapshot, claims
from checkpoints.values import digests
from checkpoints.values.canonical_json import encode_canonical
from checkpoints.values.digests import ChainDigest, ListDigest, StretchDigest, of_field
from checkpoints.values.ops import Append, Splice
from config.local.servers import OWNER
from tests.checkpoints.retention.pruned_runs import pruned
from tests.factories.arbitrary_states import after, states, writes
from tests.factories.arbitrary_states import lists as list_values
from tests.factories.stored_runs import FORMATS, REWIND, STEP, begin, small_layout, starting
from tests.harness.examples import many
from tests.harness.services import run
from tests.harness.session import Session
from tests.rolling_updates.databases import Database, released

slow = settings(max_examples=many(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
STORED = Path(__file__).with_name("first_format.copy")
MIGRATE = [sys.executable, "-m", "config.migrate"]


def assert_same(loaded: Snapshot, saved: Snapshot, state: dict[str, Any]) -> None:
    """What was loaded is what was saved, to the type and the digest."""
    assert encode_canonical(loaded.state) == encode_canonical(saved.state) == encode_canonical(state)
    expected = {name: of_field(value, loaded.list_format) for name, value in state.items()}
    assert loaded.fields == saved.fields == expected
    assert (loaded.id, loaded.seq, loaded.digest, loaded.size) == (saved.id, saved.seq, saved.digest, saved.size)
    assert loaded.state_digest == digests.of_state(loaded.fields)
    assert loaded.size == len(encode_canonical(state)) + (1 if state else 0)


@given(st.data(), states, st.sampled_from(FORMATS), st.integers(1, 5))
@slow
def test_whatever_is_saved_is_loaded_again(
    data: st.DataObject, state: dict[str, Any], list_format: type[ListDigest], every: int
) -> None:
    with starting(list_format), small_layout(every):
        _whatever_is_saved_is_loaded_again(data, state)


def _whatever_is_saved_is_loaded_again(data: st.DataObject, state: dict[str, Any]) -> None:
    run, claim, head = begin(**{})
    head = store.save(head, state, claim=claim, header=STEP)
    states_by_id = {head.id: state}
    for _ in range(data.draw(st.integers(0, 6))):
        written = data.draw(writes(state))
        state = after(state, written)
        head = store.save(head, written, claim=claim, header=STEP)
        states_by_id[head.id] = state
        if data.draw(st.integers(0, 4)) == 0:
            target = store.load_checkpoint(data.draw(st.sampled_from(sorted(states_by_id))))
            state = states_by_id[target.id]
            head = store.move_head(target, {}, claim=claim, header=REWIND)
            states_by_id[head.id] = state
    assert_same(store.load(run), head, state)
    for id, expected in states_by_id.items():
        assert encode_canonical(store.load_checkpoint(id).state) == encode_canonical(expected)
    forked = store.load(store.fork(head.id, by=SYSTEM))
    assert encode_canonical(forked.state) == encode_canonical(state)
    assert verify_run(run) == []


@given(st.data(), st.sampled_from(FORMATS))
@settings(max_examples=many(200), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_lists_digest_depends_on_its_items_alone(data: st.DataObject, list_format: type[ListDigest]) -> None:
    """Whatever was appended, spliced, sealed, removed and loaded in between."""
    with small_layout():
        part, value = parts.empty(list_format), list[Any]()
        for _ in range(data.draw(st.integers(1, 12))):
            items = data.draw(list_values)
            start = data.draw(st.integers(0, len(value)) | st.just(len(value)))
            delete = data.draw(st.integers(0, len(value) - start))
            lines = [parts.line_of(item) for item in items]
            at_end = start == len(value)
            part = parts.append(part, lines) if at_end else parts.splice(part, value, start, delete, lines)
            value[start : start + delete] = items
            if data.draw(st.booleans()):
                part, _ = parts.seal(part)
            assert part.digest == of_field(value, list_format)
            assert (part.length, part.size) == (len(value), len(encode_canonical(value)))


@pytest.fixture
def older(servers: Session, tmp_path: Path) -> Iterator[Database]:
    """A database of the release before with those rows, migrated since, which is this process's own meanwhile."""
    with released(servers) as database:
        with psycopg.connect(servers.postgres.url(database.name), autocommit=True) as admin:
            admin.execute("SET session_replication_role = replica")
            for table, rows in re.findall(r"(?ms)^(COPY .*?)$\n(.*?)^\\\.$", STORED.read_text()):
                with admin.cursor().copy(table) as copy:
                    copy.write(rows)
        with database.session(OWNER) as owner:
            xid_offset.raise_offset(owner, lost_ids=100)
        done = run(*MIGRATE, env=database.environment, within=300)
        assert done.returncode == 0, done.stderr
        own = connection.settings_dict["NAME"]
        use(database.name)
        try:
            with override_settings(HOME=tmp_path):  # where seals are exported to: those here were made elsewhere
                yield database
        finally:
            use(own)


def use(database: str) -> None:
    """Connect this process to another database of its server."""
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # its connections are to the database before
    connection.settings_dict["NAME"] = database


def stored() -> list[Run]:
    return list(Run.objects.filter(pk__in=[1, 2, 3]))


def rows_of(run: Run) -> list[CheckpointRow]:
    return [row for page in pages(run.pk) for row in page]


def assert_format(run: Run, list_format: type[ListDigest]) -> None:
    """Every row of it says so, and the digests at its head are of that format."""
    assert {row.codec & StretchDigest.CODEC for row in rows_of(run)} == {list_format.CODEC}
    head = store.load(run)
    assert head.list_format is list_format
    assert head.fields == {name: of_field(value, list_format) for name, value in head.state.items()}


@pytest.mark.long
def test_what_was_stored_in_the_first_format_is_read_goes_on_in_it_and_is_pruned(older: Database) -> None:
    """A worker of the release before takes a row in a format it does not know for damaged, and freezes the run."""
    assert Gap.objects.exists()
    assert verify_all() == []
    for each in stored():
        assert_format(each, ChainDigest)
        for row in rows_of(each):
            assert store.load_checkpoint(row.id).digest == row.digest
    for damaged in list(Checkpoint.objects.all())[::20]:
        payload = bytes([*bytes(damaged.payload)[:-1], bytes(damaged.payload)[-1] ^ 1])
        Checkpoint.objects.filter(pk=damaged.pk).update(payload=payload)
        with pytest.raises(NotVerified):
            store.load_checkpoint(damaged.pk)
        Checkpoint.objects.filter(pk=damaged.pk).update(payload=damaged.payload)
    for each in stored():
        claim = claims.take_over(each, SYSTEM)
        head = store.load(each)
        name = "log" if "log" in head.state else "messages"
        head = store.save(head, {name: Append(["x" * 3000, {"more": [2**70]}])}, claim=claim, header=STEP)
        middle = len(head.state[name]) // 2
        head = store.save(head, {name: Splice(middle, 1, ["new"]), "fresh": ["a", 1]}, claim=claim, header=STEP)
        for n in range(70):
            head = store.save(head, {name: Append([f"{n} " + "word " * 9])}, claim=claim, header=STEP)
        first = store.load_checkpoint(rows_of(each)[0].id)
        head = store.move_head(first, {name: Append(["again"])}, claim=claim, header=REWIND)
        assert_format(store.fork(head.id, by=SYSTEM), ChainDigest)
        each.refresh_from_db()
        assert_format(each, ChainDigest)
        claims.release(claim, status="completed", by=SYSTEM)
    Hold.objects.filter(kind=Hold.Kind.FORK).delete()
    before = Gap.objects.count()
    assert pruned().removed
    assert Gap.objects.count() > before
    assert verify_all() == []
    for each in stored():
        assert_format(each, ChainDigest)
    begun, claim, head = begin(l=["a"] * 70)
    assert_format(begun, ChainDigest)
    done = run(*MIGRATE, "--finish", env=os.environ | older.environment, within=300)
    assert done.returncode == 0, done.stderr
    store.save(head, {"l": Append(["b"])}, claim=claim, header=STEP)
    assert_format(begun, ChainDigest)
    assert_format(store.fork(head.id, by=SYSTEM), ChainDigest)
    assert_format(begin(l=["a"] * 70)[0], StretchDigest)
    assert verify_all() == []
