"""A database written before lists had digests over stretches: it is read, verified, and goes on as it began.

first_format.copy says how it was made: a run with splices, large items, long integers, anchors, sealed stretches that
are folded, a rewind, and a prune that left gaps; its fork; and a run that nothing was removed from.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit.verify_runs import verify_all
from checkpoints.errors import NotVerified
from checkpoints.layout.rows import CheckpointRow, pages
from checkpoints.models import Checkpoint, Gap, Hold, Run
from checkpoints.postgresql import xid_offset
from checkpoints.store import claims
from checkpoints.values.digests import ChainDigest, ListDigest, StretchDigest, of_field
from checkpoints.values.ops import Append, Splice
from config.local.servers.embedded import OWNER
from tests.checkpoints.retention.pruned_runs import pruned
from tests.factories.stored_runs import REWIND, STEP, begin
from tests.harness.services import run
from tests.harness.session import Session
from tests.rolling_updates.databases import Database, copy_of, released

STORED = Path(__file__).with_name("first_format.copy")
MIGRATE = [sys.executable, "-m", "config.migrate"]


@pytest.fixture(scope="module")
def migrated(servers: Session) -> Iterator[Database]:
    """A database of the release before with those rows, migrated since."""
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
        yield database


@pytest.fixture
def older(migrated: Database, tmp_path: Path) -> Iterator[Database]:
    """A copy of it, which is this process's own database meanwhile."""
    with copy_of(migrated) as database:
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
    """The runs of the file."""
    return list(Run.objects.filter(pk__in=[1, 2, 3]))


def rows_of(run: Run) -> list[CheckpointRow]:
    return [row for page in pages(run.pk) for row in page]


def assert_format(run: Run, list_format: type[ListDigest]) -> None:
    """Every row of it says so, and the digests at its head are of that format."""
    assert {row.codec & StretchDigest.CODEC for row in rows_of(run)} == {list_format.CODEC}
    head = store.load(run)
    assert head.list_format is list_format
    assert head.fields == {name: of_field(value, list_format) for name, value in head.state.items()}


def test_a_new_database_begins_in_the_second_format() -> None:
    assert_format(begin(l=["a"] * 70)[0], StretchDigest)


def test_what_was_stored_is_read_and_verifies_and_a_flipped_byte_is_found(older: Database) -> None:
    assert Gap.objects.exists()
    assert verify_all() == []
    for each in stored():
        assert_format(each, ChainDigest)
        for row in rows_of(each):
            assert store.load_checkpoint(row.id).digest == row.digest
    for damaged in Checkpoint.objects.all():
        payload = bytes([*bytes(damaged.payload)[:-1], bytes(damaged.payload)[-1] ^ 1])
        Checkpoint.objects.filter(pk=damaged.pk).update(payload=payload)
        with pytest.raises(NotVerified):
            store.load_checkpoint(damaged.pk)
        Checkpoint.objects.filter(pk=damaged.pk).update(payload=damaged.payload)


def test_its_runs_and_their_forks_go_on_in_the_first_format_and_are_pruned(older: Database) -> None:
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
    assert verify_all() == []
    Hold.objects.filter(kind=Hold.Kind.FORK).delete()
    before = Gap.objects.count()
    assert pruned().removed
    assert Gap.objects.count() > before
    assert verify_all() == []
    for each in stored():
        assert_format(each, ChainDigest)


def test_new_runs_change_their_format_once_the_update_is_finished(older: Database) -> None:
    """A worker of the release before takes a row in a format it does not know for damaged, and freezes the run."""
    begun, claim, head = begin(l=["a"] * 70)
    assert_format(begun, ChainDigest)
    done = run(*MIGRATE, "--finish", env=os.environ | older.environment, within=300)
    assert done.returncode == 0, done.stderr
    store.save(head, {"l": Append(["b"])}, claim=claim, header=STEP)
    assert_format(begun, ChainDigest)
    assert_format(store.fork(head.id, by=SYSTEM), ChainDigest)
    assert_format(begin(l=["a"] * 70)[0], StretchDigest)
    assert verify_all() == []
