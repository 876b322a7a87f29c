"""Any flipped bit of a checkpoint or a chunk is found, and without the key nobody appends one."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.actors import SYSTEM
from checkpoints.audit import covered_rows
from checkpoints.audit.covered_rows import NO_PROOF, UNPROVEN
from checkpoints.audit.verify_runs import _Walk, verify_all, verify_run
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.events.event_proof import CHECKPOINTS
from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import unpack_row
from checkpoints.layout.rows import CheckpointRow
from checkpoints.models import Checkpoint, Chunk, Run
from checkpoints.seals import merkle
from checkpoints.store import Header, start_and_fork
from checkpoints.store.claims import Claim
from checkpoints.values.ops import Append, Splice
from tests.factories.stored_runs import FORMATS, REWIND, STEP, begin, starting
from tests.harness.altered_rows import altered, owner
from tests.harness.examples import first_alone

CHUNK_COLUMNS = ("lineage", "digest", "codec", "payload", "checksum")
LEAVES = st.lists(
    st.binary(min_size=1, max_size=8).map(lambda data: hashlib.sha256(data).digest()), min_size=1, max_size=70
)
Head = Any


@pytest.fixture(scope="module", params=first_alone(FORMATS[::-1]))
def run(request: pytest.FixtureRequest) -> Run:
    """Anchors, deltas, sealed stretches, a large value, a rewind and a splice: one of everything."""
    with starting(request.param):
        run, claim, head = begin(messages=["first"], doc="d" * 5000)
    header = Header("step", "one", "two", 1, 2, b"i" * 32, b"c" * 32, 99)
    for n in range(70):
        head = store.save(head, {"messages": Append([f"{n} " + "word " * 60]), "n": n}, claim=claim, header=header)
    head = store.move_head(store.load_checkpoint(_id(run, 40)), {"n": 2**70}, claim=claim, header=REWIND)
    head = store.save(head, {"messages": Splice(3, 2, ["x"])}, claim=claim, header=header)
    assert verify_run(run) == []
    return run


def test_a_run_that_saves_while_it_is_verified_is_intact(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last page was read before its rows were checked, and the head after: what was saved meanwhile seemed lost."""
    run, claim, head = begin(n=0)
    header = Header("step", "one", "two", 1, 2, b"i" * 32, b"c" * 32, 99)
    visit, left = _Walk.visit, [1, 2, 3]

    def saving(walk: _Walk, row: CheckpointRow) -> None:
        nonlocal head
        visit(walk, row)
        if left:
            head = store.save(head, {"n": left.pop()}, claim=claim, header=header)

    monkeypatch.setattr(_Walk, "visit", saving)
    assert verify_run(run) == []
    assert left == []


def _id(run: Run, seq: int) -> UUID:
    return Checkpoint.objects.values_list("id", flat=True).get(run=run, seq=seq)


def flipped(value: Any, rng: random.Random) -> Any:
    """`value` with one bit flipped, whatever its type."""
    if isinstance(value, (bytes, memoryview)):
        data = bytearray(value)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    if isinstance(value, UUID):
        return UUID(int=value.int ^ 1 << rng.randrange(128))
    if isinstance(value, int):
        return value ^ 1 << rng.randrange(14)
    if isinstance(value, str):
        at = rng.randrange(len(value))
        return value[:at] + chr(ord(value[at]) ^ 1 << rng.randrange(3)) + value[at + 1 :]
    return value + timedelta(microseconds=1 << rng.randrange(40))


@contextmanager
def damaged(table: str, column: str, where: dict[str, Any], value: Any) -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            condition = " AND ".join(f"{name} = %s" for name in where)
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {condition}", [value, *where.values()])
            assert cursor.rowcount == 1
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("column", CheckpointRow._fields)
@pytest.mark.parametrize("seq", first_alone([30, 65, 1, 72, 73], 2), ids=str)
def test_a_flipped_bit_in_a_checkpoint_is_found(run: Run, column: str, seq: int) -> None:
    rng = random.Random(f"{column}{seq}")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {column} FROM checkpoints_checkpoint WHERE run_id = %s AND seq = %s", [run.pk, seq])
        value = cursor.fetchone()[0]
    absent = UUID(int=7) if column == "parent" else b"x" * 32
    changed = absent if value is None else flipped(value, rng)
    try:
        with damaged("checkpoints_checkpoint", column, {"run_id": run.pk, "seq": seq}, changed):
            assert verify_run(run)
    except IntegrityError:
        assert column in ("seq", "run_id"), "two checkpoints with one number: the constraint found it"


@pytest.mark.parametrize("column", CHUNK_COLUMNS)
def test_a_flipped_bit_in_any_chunk_is_found(run: Run, column: str) -> None:
    chunks = list(Chunk.objects.filter(lineage=run.lineage).values(*CHUNK_COLUMNS))
    assert len(chunks) >= 2
    for n, chunk in enumerate(chunks):
        changed = flipped(chunk[column], random.Random(n))
        where = {"lineage": chunk["lineage"], "digest": bytes(chunk["digest"])}
        with damaged("checkpoints_chunk", column, where, changed):
            assert verify_run(run)


def fails(run: Run) -> bool:
    for id in Checkpoint.objects.filter(run=run).order_by("-seq").values_list("id", flat=True):
        try:
            store.load_checkpoint(id)
        except NotVerified:
            return True
    return False


def test_a_chunk_whose_checksum_fits_what_was_put_there_is_found(run: Run) -> None:
    for chunk in Chunk.objects.filter(lineage=run.lineage):
        content = bytearray(payloads.unpack(chunk.codec, bytes(chunk.payload)))
        assert len(content) > 500
        for at in (0, len(content) // 2, len(content) - 1):
            other = bytearray(content)
            other[at] ^= 1
            _forged_is_found(run, chunk, bytes(other))
        _forged_is_found(run, chunk, bytes(content) + b'\n"one more"')
        _forged_is_found(run, chunk, bytes(content).rpartition(b"\n")[0])


def _forged_is_found(run: Run, chunk: Chunk, content: bytes) -> None:
    codec, payload = payloads.pack(content, wide=False)
    checksum = payloads.chunk_checksum(chunk.lineage, bytes(chunk.digest), codec, payload)
    with transaction.atomic():
        Chunk.objects.filter(pk=chunk.pk).update(codec=codec, payload=payload, checksum=checksum)
        assert fails(run)
        assert verify_run(run)
        transaction.set_rollback(True)


def forged(value: bytes) -> list[bytes]:
    """Other values of a field of a manifest's line: level, count, size, head or digest."""
    return [value[::-1]] if len(value) == 64 else [b"0", b"%d" % (int(value) + 1), b"%d" % (int(value) - 1)]


@pytest.mark.parametrize(("column", "matters"), [(0, False), (1, True), (2, False), (3, True), (4, True)])
def test_a_manifest_whose_checksum_fits_what_was_put_there_is_found(run: Run, column: int, matters: bool) -> None:
    """A count of none let lines pass unhashed. Level and size are no part of the state: nothing is read from them."""
    anchor = rows.trail(_id(run, 65)).rows[0]
    line = _sealed_line(anchor)
    fields = line[1:].split(b":")
    for value in forged(fields[column]):
        changed = b"#" + b":".join([*fields[:column], value, *fields[column + 1 :]])
        with replaced(anchor, line, changed):
            assert (fails(run), bool(verify_run(run))) == (matters, matters)


def _sealed_line(row: CheckpointRow) -> bytes:
    _, lines = unpack_row(row)
    return next(line for line in lines if line[:1] == b"#")


@contextmanager
def replaced(row: CheckpointRow, line: bytes, *others: bytes) -> Iterator[None]:
    """Other lines of a list in an anchor's payload, with the checksum that fits them, and put back."""
    ops, lines = unpack_row(row)
    at = lines.index(line)
    lines[at : at + 1] = others
    next(op for op in ops if op[0] == "list")[-1] += len(others) - 1
    codec, payload = payloads.pack(payloads.join(ops, lines), wide=False)
    codec |= row.codec & ~payloads.ZSTD
    checksum = payloads.row_checksum(row.digest, row.anchor_seq, codec, payload)
    with transaction.atomic():
        Checkpoint.objects.filter(pk=row.id).update(codec=codec, payload=payload, checksum=checksum)
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("column", ["payload", "checksum", "state_digest", "next_step"])
def test_a_run_never_continues_from_what_does_not_verify(run: Run, column: str) -> None:
    value = Checkpoint.objects.filter(run=run).order_by("seq").values_list(column, flat=True).last()
    where = {"run_id": run.pk, "seq": 73}
    with damaged("checkpoints_checkpoint", column, where, flipped(value, random.Random(1))), pytest.raises(NotVerified):
        store.load(run)


def test_a_head_that_is_not_the_runs_own_newest_checkpoint_is_no_head(run: Run) -> None:
    """A head set back, or to another run's checkpoint, was loaded as it stood: the run went on from there.

    Nor was the next step, which pages show by the run's own column, compared with the head's.
    """
    for changed, said in (
        ({"head": _id(run, 72)}, "head"), ({"head": begin(messages=[])[2].id}, "head"),
        ({"next_step": "elsewhere"}, "elsewhere"),
    ):  # fmt: skip
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**changed)
            if "head" in changed:
                with pytest.raises(NotVerified, match="newest"):
                    store.load(run)
            assert any(said in problem.reason for problem in verify_run(run))
            transaction.set_rollback(True)


LOST: dict[str, Callable[[Run], Any]] = {
    "a row in the middle": lambda run: Checkpoint.objects.filter(run=run, seq=50).delete(),
    "the head": lambda run: Checkpoint.objects.filter(run=run, seq=73).delete(),
    "the first": lambda run: Checkpoint.objects.filter(run=run, seq=1).delete(),
    "a chunk": lambda run: Chunk.objects.filter(lineage=run.lineage).delete(),
}


def test_what_is_lost_is_missed_and_a_checkpoint_of_no_run_is_found_by_the_whole_check(run: Run) -> None:
    for what, lose in LOST.items():
        with transaction.atomic():
            lose(run)
            assert verify_run(run), what
            transaction.set_rollback(True)
    with damaged("checkpoints_checkpoint", "run_id", {"run_id": run.pk, "seq": 73}, 2**40):
        assert any("belongs to no run" in str(problem) for problem in verify_all())


def rfc6962(leaves: list[bytes]) -> bytes:
    """The tree's root as RFC 6962, section 2.1, defines it."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + rfc6962(leaves[:split]) + rfc6962(leaves[split:])).digest()


@given(LEAVES, st.data())
def test_every_leaf_leads_to_the_root_at_its_own_place_alone_and_nothing_else_does(
    leaves: list[bytes], data: st.DataObject
) -> None:
    tree = merkle.levels(leaves)
    root = merkle.root(leaves)
    assert root == tree[-1][0] == rfc6962(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle.path(tree, index)
    assert merkle.climb(leaves[index], index, len(leaves), path) == root
    other = data.draw(st.integers(-1, len(leaves) + 1))
    if not 0 <= other < len(leaves) or leaves[other] != leaves[index]:
        assert merkle.climb(leaves[index], other, len(leaves), path) != root
    assert merkle.climb(bytes(32), index, len(leaves), path) != root
    assert merkle.climb(leaves[index], index, len(leaves), [*path, bytes(32)]) != root
    for at in range(len(path)):
        for others in ([], [bytes(32)]):
            changed = [*path[:at], *others, *path[at + 1 :]]
            assert merkle.climb(leaves[index], index, len(leaves), changed) != root


def step(run: Run, claim: Claim, head: Head) -> Run:
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    return run


def step_with_all(run: Run, claim: Claim, head: Head) -> Run:
    """What needs another statement: chunks, notes, a run that stops."""
    store.save(head, {"doc": "d" * 9000}, claim=claim, header=STEP, notes=["why"], status="waiting", reason="asks")
    return run


def deferred(run: Run, claim: Claim, head: Head) -> Run:
    store.defer(head, {"n": 1}, claim=claim, header=STEP).write()
    return run


def rewind(run: Run, claim: Claim, head: Head) -> Run:
    after = store.save(head, {"n": 1}, claim=claim, header=STEP)
    store.move_head(head, {"n": 2}, claim=claim, header=REWIND)
    assert after.seq == 2
    return run


def fork(run: Run, claim: Claim, head: Head) -> Run:
    return store.fork(head.id, by=SYSTEM, writes={"n": 3})


def start(run: Run, claim: Claim, head: Head) -> Run:
    return begin(n=0)[0]


def waiting(run: Run, claim: Claim, head: Head) -> Run:
    """A run that waits for people from its first checkpoint on."""
    made = Run(plan=run.plan, team=run.team, title="Asks", started_as=SYSTEM.id)
    with transaction.atomic():
        [number], at, list_format = start_and_fork.new_numbers(1)
        draft = start_and_fork.first_checkpoint(
            made, number, {"n": 0}, first_step="one", at=at, list_format=list_format
        )
        rows = start_and_fork.waiting_rows([made], [draft], ["asks: x"])
        event_log.append_events(start_and_fork.began(made, SYSTEM), extras=rows)
    return made


WAYS = [step, step_with_all, deferred, rewind, fork, start, waiting]


@pytest.mark.parametrize("way", WAYS)
def test_whatever_saves_a_checkpoint_proves_it_and_is_named_without_the_key(
    settings: Any, way: Callable[..., Run]
) -> None:
    run = way(*begin(n=0))
    assert not Checkpoint.objects.filter(run=run, proof=None).exists()
    assert verify_run(run) == []
    for guess, said in (("", NO_PROOF), ("a guess", UNPROVEN)):
        before = begin(n=0)
        key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, guess
        run = way(*before)
        settings.HOLDPOINT_SEAL_KEY = key
        assert said in {problem.reason for problem in verify_run(run)}
        Checkpoint.objects.filter(run=run).delete()


def test_a_proof_is_of_one_checkpoint_and_of_a_key_that_counts_where_one_is_set(settings: Any) -> None:
    run, claim, head = begin(n=0)
    after = store.save(head, {"n": 1}, claim=claim, header=STEP)
    first, second = Checkpoint.objects.filter(run=run).order_by("seq")
    assert first.proof is not None
    with altered(second, proof=bytes(first.proof)):
        assert [problem.reason for problem in verify_run(run)] == [UNPROVEN]
    assert second.pk == after.id
    run, claim, head = begin(n=0)
    settings.HOLDPOINT_OLD_SEAL_KEYS, settings.HOLDPOINT_SEAL_KEY = [settings.HOLDPOINT_SEAL_KEY], "the next key"
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert [problem.reason for problem in verify_run(run)] == []
    settings.HOLDPOINT_SEAL_KEY = ""
    run, claim, head = begin(n=0)
    store.save(head, {"n": 1}, claim=claim, header=STEP)
    assert verify_run(run) == []


@pytest.fixture
def unfinished() -> Iterator[None]:
    """A database from before proofs were required."""
    with owner() as made:
        made.execute("CREATE TEMP TABLE kept AS SELECT * FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        made.execute("DELETE FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        yield
        made.execute("DELETE FROM checkpoints_event WHERE subject = %s", [CHECKPOINTS])
        made.execute("INSERT INTO checkpoints_event OVERRIDING SYSTEM VALUE TABLE kept")


@pytest.mark.usefixtures("unfinished")
def test_what_was_there_before_counts_once_the_update_is_finished(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release before proves nothing: what it still saves beside this one is no forgery."""
    monkeypatch.setattr(covered_rows, "PROOFS_PART", 1)  # so that each run has an event of its own
    (one, claim, head), (other, *_) = begin(n=0), begin(n=0)
    covered_rows.require_proofs(finish=False)
    key, settings.HOLDPOINT_SEAL_KEY = settings.HOLDPOINT_SEAL_KEY, ""
    head = store.save(head, {"n": 1}, claim=claim, header=STEP)
    third = begin(n=0)[0]
    settings.HOLDPOINT_SEAL_KEY = key
    assert [verify_run(run) for run in (one, other, third)] == [[], [], []]
    covered_rows.require_proofs(finish=True)
    assert [verify_run(run) for run in (one, other, third)] == [[], [], []]
    settings.HOLDPOINT_SEAL_KEY = ""
    late = store.save(head, {"n": 2}, claim=claim, header=STEP)
    settings.HOLDPOINT_SEAL_KEY = key
    covered_rows.require_proofs(finish=True)  # vouches for nothing more
    assert [problem.reason for problem in verify_run(one)] == [NO_PROOF]
    Checkpoint.objects.filter(Q(run=third) | Q(pk__in=(late.id, head.id))).delete()
