"""Whatever somebody with the owner's role did to the audit is found, and the row that they did it to is named."""

from __future__ import annotations

import hashlib
import json

import pytest

from checkpoints.audit import database, sealer
from checkpoints.audit.database import VerificationWalk
from checkpoints.audit.reading import row_of
from checkpoints.events import event_proof
from checkpoints.models import Event, Seal
from checkpoints.seals import leaves, merkle
from tests.harness import horizon

from .sealed_events import erase, forged, found, remade, say, seal_all, three

pytestmark = pytest.mark.whole_database

EVENT = "UPDATE checkpoints_event SET {change} WHERE id = {id}"
# By what is done to an event, what is said of it.
ALTERED = [
    ("actor = 'user:8', actor_name = 'Bob'", "its actor and its actor's name are"),
    ("at = at + interval '1 microsecond'", "its time is"),
    ("at = 'infinity'", "its time is"),
    ("kind = 'checkpoint.saved'", "its kind is"),
    ("run_id = 5, team_id = 6", "its run and its team are"),
    ("subject = 'gate:1', version = 4", "its subject and its version are"),
    ("data = decode('ff', 'hex')", "its data is"),
    ("text_digest = NULL", "the digest of its text is"),
]
SEAL_COLUMNS = [
    "first_xid = first_xid - 1", "count = count + 1", "heads = '{\"5\":[1,\"00\"]}'", "previous = decode('00', 'hex')",
    "digest = decode(repeat('00', 32), 'hex')",
]  # fmt: skip
Past = tuple[Event, Event, Event, Seal]
NO_ORDER = "no proven order to erase it is in the audit"


@pytest.fixture(scope="module")
def past() -> Past:
    """Three events and their seal: each forgery is undone before the next. The tests that use it seal nothing."""
    return three()


def test_every_column_of_an_event_or_a_seal_that_was_altered_is_named(past: Past) -> None:
    event = past[1]
    for change, said in ALTERED:
        with forged(EVENT.format(change=change, id=event.pk)):
            named = [each for each in found() if "was altered" in each]
        assert named == [f"event {event.pk}: (test.said) was altered: {said} not what was sealed"], change
    assert found() == []
    *_, seal = past
    for change in SEAL_COLUMNS:
        with forged(f"UPDATE checkpoints_seal SET {change} WHERE id = {seal.pk}"):
            said = "was made with another key, or its columns do not match its digest"
            assert f"seal {seal.pk}: {said}" in found(), change


def test_an_event_that_was_removed_slipped_in_moved_or_exchanged_is_named(past: Past) -> None:
    _, event, _, seal = past
    with forged(f"DELETE FROM checkpoints_event WHERE id = {event.pk}"):
        assert found() == [f"event {event.pk}: (test.said) was removed from seal {seal.pk}"]
    event, _, _, seal = past
    with forged(
        "INSERT INTO checkpoints_event (id, xid, kind, subject, version, actor, actor_name, data) "
        f"VALUES (-7, {event.xid}, 'gate.closed', 'gate:1', 0, 'user:7', 'Ann', '{{}}')"
    ):
        said = f"(gate.closed) was slipped in: it lies in the range of seal {seal.pk}, and in no seal"
        assert found() == [f"event -7: {said}"]
    _, event, _, _ = past
    with forged(EVENT.format(change=f"xid = {event.xid} + 1000000", id=event.pk)):
        said = f"was moved: it was written by transaction {event.xid}, and says {event.xid + 1000000}"
        assert found() == [f"event {event.pk}: (test.said) {said}"]
    one, _, other, _ = past
    swap = [f"UPDATE checkpoints_event SET id = {new} WHERE id = {old}" for old, new in
            [(one.pk, -1), (other.pk, one.pk), (-1, other.pk)]]  # fmt: skip
    with forged(*swap):
        assert found() == [
            f"event {one.pk}: was put in another's place: it holds what was sealed as event {other.pk}",
            f"event {other.pk}: was put in another's place: it holds what was sealed as event {one.pk}",
        ]


@pytest.mark.usefixtures("past")
def test_a_cut_tail_is_named_by_what_was_exported() -> None:
    last = Seal.objects.latest("pk")
    with forged(
        f"DELETE FROM checkpoints_seal WHERE id = {last.pk}",
        f"DELETE FROM checkpoints_event WHERE (xid, id) >= ({last.first_xid}, {last.first_id})",
    ):
        number = len(sealer.export_path().read_text().splitlines())
        assert found() == [f"seal {last.pk}: was exported (line {number} of seals.jsonl) and is gone"]


def test_a_text_that_was_replaced_is_named_and_so_is_one_that_there_never_was(past: Past) -> None:
    silent, spoken, _, _ = past
    with forged(
        f"UPDATE checkpoints_eventtext SET text = 'another' WHERE event_id = {spoken.pk}",
        f"INSERT INTO checkpoints_eventtext (event_id, salt, text) VALUES ({silent.pk}, 'x', 'y')",
    ):
        assert sorted(found()) == sorted(
            f"event {id}: the text of event {id} is not what was written" for id in (silent.pk, spoken.pk)
        )


def test_a_seal_made_anew_is_named_with_the_key_by_what_was_exported_and_without_it_at_once() -> None:
    *_, event, _ = three()
    last = say()
    seal = seal_all()
    row = row_of(last)._replace(actor="user:8")
    marks = leaves.pack([row])
    change = remade(
        seal, key=event_proof.seal_key(), root=merkle.root([leaves.compute_leaf(row)]), marks_digest=_sha(marks)
    )
    with forged(
        EVENT.format(change="actor = 'user:8'", id=last.pk),
        change,
        f"UPDATE checkpoints_seal SET marks = decode('{marks.hex()}', 'hex') WHERE id = {seal.pk}",
    ):
        (said,) = found()
    assert said.startswith(f"seal {seal.pk}: is not the one that was exported")
    assert event.pk != last.pk
    say()
    seal = seal_all()
    with forged(remade(seal, key=b"")):
        said = "was made without the key: whoever can write the database can have written it"
        assert f"seal {seal.pk}: {said}" in found()


@pytest.mark.parametrize("emptied", [False, True])
def test_what_is_kept_beside_a_seal_is_covered_by_it(emptied: bool) -> None:
    *_, seal = three()
    other = b"" if emptied else leaves.pack([row_of(say())])
    with forged(f"UPDATE checkpoints_seal SET marks = decode('{other.hex()}', 'hex') WHERE id = {seal.pk}"):
        said = found()
    assert f"seal {seal.pk}: its root and what is kept of its events beside it do not agree" in said
    assert any("do not match its digest" in each for each in said)


def test_an_altered_line_of_the_exported_seals_is_named_and_the_seal_is_not_accused() -> None:
    *_, seal = three()
    path = sealer.export_path()
    whole = path.read_text()
    number = next(n for n, line in enumerate(whole.splitlines(), 1) if json.loads(line)["seal"] == seal.pk)
    digest = bytes(seal.digest).hex()
    try:
        path.write_text(whole.replace(f'"digest": "{digest}"', f'"digest": "{"0" * 64}"'))
        said = f"what it says of seal {seal.pk} was altered, or made with another key"
        assert found() == [f"line {number} of seals.jsonl: {said}"]
    finally:
        path.write_text(whole)


def test_a_text_that_is_gone_is_named_without_a_proven_order_and_counted_with_one() -> None:
    _, spoken, _, _ = three()
    with forged(f"DELETE FROM checkpoints_eventtext WHERE event_id = {spoken.pk}"):
        gone = f"event {spoken.pk}: the text of event {spoken.pk} is gone, and {NO_ORDER}"
        assert found() == [gone]
    before = finished()
    erase(spoken)
    assert found() == []
    assert finished().erased == before.erased + 1
    # An order covered no rows, so it had no proof: a comment went, "Root erased it", and nothing was found.
    _, spoken, _, _ = three()
    gone = f"event {spoken.pk}: the text of event {spoken.pk} is gone, and {NO_ORDER}"
    with forged(f"DELETE FROM checkpoints_eventtext WHERE event_id = {spoken.pk}"):
        forge_order(spoken)
        assert found() == [gone]
    erase(spoken)
    assert found() == []


def forge_order(event: Event) -> Event:
    """An order to erase as the application's role may write it, which has no key."""
    by = {"actor": "user:1", "actor_name": "Root"}
    return Event.objects.create(kind="text.erased", subject=f"event:{event.pk}", data=b'{"rows":{}}', **by)


def test_what_is_not_sealed_yet_is_told_and_is_no_fault() -> None:
    seal_all()
    assert sealer.tail().count == 0
    say()
    horizon.reached()
    tail = sealer.tail()
    assert (tail.count, tail.late) == (1, False)
    assert found() == []


def finished() -> VerificationWalk:
    walk = database.begin()
    while not walk.done:
        walk.step()
    return walk


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
