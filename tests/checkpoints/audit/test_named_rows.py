"""Whatever somebody with the owner's role did to the audit is found, and the row that they did it to is named."""

from __future__ import annotations

import hashlib
import json

import pytest

from checkpoints.actors import SYSTEM
from checkpoints.audit import database, sealer
from checkpoints.audit.database import VerificationWalk
from checkpoints.audit.reading import row_of, seal_fact
from checkpoints.events import event_log, event_proof
from checkpoints.events.event_proof import REQUIRED
from checkpoints.models import Event, Seal
from checkpoints.seals import leaves, merkle
from tests.factories import make_run
from tests.harness import horizon

from .sealed_events import earlier, erase, forged, found, remade, say, seal_all, three

pytestmark = pytest.mark.whole_database

EVENT = "UPDATE checkpoints_event SET {change} WHERE id = {id}"
# By what is done to an event, what is said of it.
ALTERED = [
    ("actor = 'user:8'", "its actor is"),
    ("actor = 'user:8', actor_name = 'Bob'", "its actor and its actor's name are"),
    ("at = at + interval '1 microsecond'", "its time is"),
    ("at = 'infinity'", "its time is"),
    ("at = '4000-01-01 BC'", "its time is"),
    ("kind = 'checkpoint.saved'", "its kind is"),
    ("kind = 'gate.closed'", "its kind is"),
    ("run_id = 5, team_id = 6", "its run and its team are"),
    ("subject = 'gate:1', version = 4", "its subject and its version are"),
    ("data = '{}'", "its data is"),
    ("data = decode('ff', 'hex')", "its data is"),
    ("text_digest = NULL", "the digest of its text is"),
]
SEAL_COLUMNS = [
    "at = at + interval '1 hour'", "first_xid = first_xid - 1", "first_id = first_id - 1", "count = count + 1",
    "merkle_root = decode(repeat('00', 32), 'hex')", "heads = '{\"5\":[1,\"00\"]}'", "previous = decode('00', 'hex')",
    "digest = decode(repeat('00', 32), 'hex')", "last_xid = last_xid - 1", "last_id = last_id - 1",
]  # fmt: skip
Past = tuple[Event, Event, Event, Seal]


@pytest.fixture(scope="module")
def past() -> Past:
    """Three events and their seal: each forgery is undone before the next. The tests that use it seal nothing."""
    return three()


def test_an_altered_event_is_named_with_its_kind_and_what_differs(past: Past) -> None:
    event = past[1]
    for change, said in ALTERED:
        with forged(EVENT.format(change=change, id=event.pk)):
            named = [each for each in found() if "was altered" in each]
        assert named == [f"event {event.pk}: (test.said) was altered: {said} not what was sealed"], change
    assert found() == []


def test_a_removed_event_is_named_with_its_kind(past: Past) -> None:
    _, event, _, seal = past
    with forged(f"DELETE FROM checkpoints_event WHERE id = {event.pk}"):
        assert found() == [f"event {event.pk}: (test.said) was removed from seal {seal.pk}"]


def test_all_events_of_a_seal_removed_are_named_one_by_one(past: Past) -> None:
    *events, seal = past
    ids = [event.pk for event in events]
    with forged(f"DELETE FROM checkpoints_event WHERE id IN ({ids[0]}, {ids[1]}, {ids[2]})"):
        assert found() == [f"event {id}: (test.said) was removed from seal {seal.pk}" for id in ids]


def test_an_event_slipped_into_a_sealed_range_is_named(past: Past) -> None:
    event, _, _, seal = past
    with forged(
        "INSERT INTO checkpoints_event (id, xid, kind, subject, version, actor, actor_name, data) "
        f"VALUES (-7, {event.xid}, 'gate.closed', 'gate:1', 0, 'user:7', 'Ann', '{{}}')"
    ):
        said = f"(gate.closed) was slipped in: it lies in the range of seal {seal.pk}, and in no seal"
        assert found() == [f"event -7: {said}"]


def test_an_event_copied_under_another_number_is_named_with_the_one_it_was(past: Past) -> None:
    event, _, _, _ = past
    columns = "xid, at, kind, run_id, team_id, subject, version, actor, actor_name, data, text_digest"
    copy = f"INSERT INTO checkpoints_event (id, {columns}) SELECT -8, {columns} FROM checkpoints_event"
    with forged(f"{copy} WHERE id = {event.pk}", f"DELETE FROM checkpoints_event WHERE id = {event.pk}"):
        assert f"event -8: (test.said) is event {event.pk} under another number" in found()


def test_two_events_that_changed_places_are_both_named(past: Past) -> None:
    one, _, other, _ = past
    swap = [f"UPDATE checkpoints_event SET id = {new} WHERE id = {old}" for old, new in
            [(one.pk, -1), (other.pk, one.pk), (-1, other.pk)]]  # fmt: skip
    with forged(*swap):
        assert found() == [
            f"event {one.pk}: was put in another's place: it holds what was sealed as event {other.pk}",
            f"event {other.pk}: was put in another's place: it holds what was sealed as event {one.pk}",
        ]


def test_an_event_moved_to_another_transaction_is_named(past: Past) -> None:
    _, event, _, _ = past
    with forged(EVENT.format(change=f"xid = {event.xid} + 1000000", id=event.pk)):
        said = f"was moved: it was written by transaction {event.xid}, and says {event.xid + 1000000}"
        assert found() == [f"event {event.pk}: (test.said) {said}"]


@pytest.mark.usefixtures("past")
def test_a_cut_tail_is_named_by_what_was_exported() -> None:
    last = Seal.objects.latest("pk")
    with forged(
        f"DELETE FROM checkpoints_seal WHERE id = {last.pk}",
        f"DELETE FROM checkpoints_event WHERE (xid, id) >= ({last.first_xid}, {last.first_id})",
    ):
        number = len(sealer.export_path().read_text().splitlines())
        assert found() == [f"seal {last.pk}: was exported (line {number} of seals.jsonl) and is gone"]


def test_a_seal_removed_from_the_middle_leaves_a_hole_that_the_next_one_names(past: Past) -> None:
    *_, seal = past
    with forged(f"DELETE FROM checkpoints_seal WHERE id = {seal.pk}"):
        said = found()
    assert any(each.startswith(f"seal {seal.pk + 1}: does not follow seal") for each in said)
    assert any(each.startswith(f"seal {seal.pk}: was exported") for each in said)


def test_a_seal_whose_columns_were_altered_is_named(past: Past) -> None:
    *_, seal = past
    for change in SEAL_COLUMNS:
        with forged(f"UPDATE checkpoints_seal SET {change} WHERE id = {seal.pk}"):
            said = "was made with another key, or its columns do not match its digest"
            assert f"seal {seal.pk}: {said}" in found(), change


def test_a_text_that_was_replaced_is_named_and_so_is_one_that_there_never_was(past: Past) -> None:
    silent, spoken, _, _ = past
    with forged(
        f"UPDATE checkpoints_eventtext SET text = 'another' WHERE event_id = {spoken.pk}",
        f"INSERT INTO checkpoints_eventtext (event_id, salt, text) VALUES ({silent.pk}, 'x', 'y')",
    ):
        assert sorted(found()) == sorted(
            f"event {id}: the text of event {id} is not what was written" for id in (silent.pk, spoken.pk)
        )


def test_a_seal_made_anew_by_somebody_who_has_the_key_is_named_by_what_was_exported() -> None:
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


def test_a_seal_made_anew_without_the_key_is_named() -> None:
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


def test_a_text_that_is_gone_without_an_order_is_named_and_one_with_an_order_is_counted() -> None:
    _, spoken, _, _ = three()
    with forged(f"DELETE FROM checkpoints_eventtext WHERE event_id = {spoken.pk}"):
        gone = f"event {spoken.pk}: the text of event {spoken.pk} is gone, and {NO_ORDER}"
        assert found() == [gone]
    before = finished()
    erase(spoken)
    assert found() == []
    assert finished().erased == before.erased + 1


NO_ORDER = "no proven order to erase it is in the audit"


def forge_order(event: Event) -> Event:
    """An order to erase as the application's role may write it, which has no key."""
    by = {"actor": "user:1", "actor_name": "Root"}
    return Event.objects.create(kind="text.erased", subject=f"event:{event.pk}", data=b'{"rows":{}}', **by)


def test_a_text_that_was_erased_by_a_forged_order_is_named() -> None:
    """An order covered no rows, so it had no proof: a comment went, "Root erased it", and nothing was found."""
    _, spoken, _, _ = three()
    gone = f"event {spoken.pk}: the text of event {spoken.pk} is gone, and {NO_ORDER}"
    with forged(f"DELETE FROM checkpoints_eventtext WHERE event_id = {spoken.pk}"):
        forge_order(spoken)
        assert found() == [gone]
    erase(spoken)
    assert found() == []


def test_an_order_from_before_orders_had_proofs_counts() -> None:
    _, before, _, _ = three()
    _, after, _, _ = three()
    with forged(
        f"DELETE FROM checkpoints_eventtext WHERE event_id IN ({before.pk}, {after.pk})",
        f"DELETE FROM checkpoints_event WHERE subject = '{REQUIRED}'",  # of the migration
    ):
        forge_order(before)
        assert not any(NO_ORDER in each for each in found() if f"event {before.pk}:" in each)  # not required yet
        event_log.record("seal.required", subject=REQUIRED, by=SYSTEM, data={"rows": {}})
        forge_order(after)
        event_log.record("seal.required", subject=REQUIRED, by=SYSTEM, data={"rows": {}})  # a later one counts nothing
        assert [each for each in found() if NO_ORDER in each] == [
            f"event {after.pk}: the text of event {after.pk} is gone, and {NO_ORDER}"
        ]
    assert found() == []


def test_a_walk_that_is_put_down_and_taken_up_finds_the_same() -> None:
    _, event, _, seal = three()
    with forged(EVENT.format(change="actor = 'user:8'", id=event.pk), remade(seal, key=b"")):
        whole, since = found(), earlier()
        walk, said = database.begin(after=since), []
        while not walk.done:
            said += [str(problem) for problem in walk.step(events=2)]
            walk = type(walk).from_json(json.loads(json.dumps(walk.to_json())), key=event_proof.seal_key())
        said += [str(problem) for problem in (*walk.chain.digests(), *database.exported_seals(since=since))]
    assert sorted(said) == sorted(whole)
    assert len(whole) > 1


def test_what_is_not_sealed_yet_is_told_and_is_no_fault() -> None:
    seal_all()
    assert sealer.tail().count == 0
    say()
    horizon.reached()
    tail = sealer.tail()
    assert (tail.count, tail.late) == (1, False)
    assert found() == []


def test_the_heads_of_a_seal_are_found_by_their_numbers() -> None:
    run = make_run()
    seal = seal_all()
    (head,) = [head for head in database.heads_of(seal_fact(seal)) if head.run == run.pk]
    assert head.seq == 1
    assert database.stored_heads([head]) == {head}
    assert database.stored_heads([head._replace(seq=2)]) == set()
    assert database.stored_heads([head._replace(digest=bytes(32))]) == set()
    assert database.stored_heads([]) == set()


def finished() -> VerificationWalk:
    walk = database.begin()
    while not walk.done:
        walk.step()
    return walk


def _sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
