"""Any flipped bit in any stored column of a checkpoint or a chunk is found; Merkle paths prove what is there alone."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import store
from checkpoints.audit.verify_runs import _Walk, verify_all, verify_run
from checkpoints.errors import NotVerified
from checkpoints.layout import payloads, rows
from checkpoints.layout.assembly import make_fetcher, unpack_row
from checkpoints.layout.parts import SealedStretch
from checkpoints.layout.rows import CheckpointRow
from checkpoints.models import Checkpoint, Chunk, Run
from checkpoints.seals import merkle
from checkpoints.store import Header
from checkpoints.values.digests import ListDigest, StretchDigest
from checkpoints.values.ops import Append, Splice
from tests.factories.stored_runs import FORMATS, REWIND, begin, starting

CHUNK_COLUMNS = ("lineage", "digest", "codec", "payload", "checksum")


@pytest.fixture(scope="module", params=FORMATS)
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
    """One column of one row changed, and put back."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            condition = " AND ".join(f"{name} = %s" for name in where)
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE {condition}", [value, *where.values()])
            assert cursor.rowcount == 1
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("column", CheckpointRow._fields)
@pytest.mark.parametrize("seq", [1, 30, 65, 72, 73], ids=["first", "change", "anchor", "rewind", "head"])
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
    """Whether a checkpoint of the run cannot be loaded."""
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


@pytest.mark.parametrize("list_format", FORMATS)
def test_a_size_that_hides_large_values_is_found(list_format: type[ListDigest]) -> None:
    with starting(list_format):
        run, _, head = begin(l=["x" * 3000, "y" * 3000, *(["plain"] * 500)])
    anchor = rows.trail(head.id).rows[0]
    stretch = SealedStretch.of_line(_sealed_line(anchor))
    content, _ = make_fetcher(run.lineage)({stretch.digest})[stretch.digest]
    plain = replace(stretch, size=len(content) - stretch.count + 1)
    assert stretch.size > plain.size
    with replaced(anchor, stretch.line(), plain.line()):
        assert fails(run)
        assert verify_run(run)


def test_items_that_a_manifest_names_once_more_and_counts_for_none_are_found(run: Run) -> None:
    anchor = rows.trail(_id(run, 65)).rows[0]
    line = _sealed_line(anchor)
    again = replace(SealedStretch.of_line(line), count=0).line()
    with replaced(anchor, line, line, again):
        assert fails(run)
        assert verify_run(run)


def test_a_row_whose_digests_are_said_to_be_of_another_format_is_found(run: Run) -> None:
    row = rows.trail(_id(run, 30)).rows[-1]
    codec = row.codec ^ StretchDigest.CODEC
    checksum = payloads.row_checksum(row.digest, row.anchor_seq, codec, row.payload)
    with transaction.atomic():
        Checkpoint.objects.filter(pk=row.id).update(codec=codec, checksum=checksum)
        with pytest.raises(NotVerified, match="another format"):
            store.load_checkpoint(row.id)
        assert verify_run(run)
        transaction.set_rollback(True)


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


@pytest.mark.parametrize(
    "column", ["payload", "codec", "checksum", "digest", "state_digest", "anchor_seq", "next_step"]
)
def test_a_run_never_continues_from_what_does_not_verify(run: Run, column: str) -> None:
    value = Checkpoint.objects.filter(run=run).order_by("seq").values_list(column, flat=True).last()
    where = {"run_id": run.pk, "seq": 73}
    with damaged("checkpoints_checkpoint", column, where, flipped(value, random.Random(1))), pytest.raises(NotVerified):
        store.load(run)


def test_two_payloads_that_change_places_are_found(run: Run) -> None:
    columns = ("codec", "payload", "checksum")
    rows = {seq: Checkpoint.objects.filter(run=run, seq=seq).values(*columns).get() for seq in (20, 21)}
    with transaction.atomic():
        Checkpoint.objects.filter(run=run, seq=20).update(**rows[21])
        Checkpoint.objects.filter(run=run, seq=21).update(**rows[20])
        assert verify_run(run)
        transaction.set_rollback(True)


def test_a_head_that_is_not_the_runs_own_newest_checkpoint_is_no_head(run: Run) -> None:
    """A head set back, or to another run's checkpoint, was loaded as it stood: the run went on from there."""
    for head in (_id(run, 72), begin(messages=[])[2].id):
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(head=head)
            with pytest.raises(NotVerified, match="newest"):
                store.load(run)
            assert any("head" in problem.reason for problem in verify_run(run))
            transaction.set_rollback(True)


def test_a_next_step_that_the_head_does_not_name_is_found(run: Run) -> None:
    """Pages show the run's own column, which nothing compared with the head's."""
    with transaction.atomic():
        Run.objects.filter(pk=run.pk).update(next_step="elsewhere")
        assert any("elsewhere" in problem.reason for problem in verify_run(run))
        transaction.set_rollback(True)


LOST: dict[str, Callable[[Run], Any]] = {
    "a row in the middle": lambda run: Checkpoint.objects.filter(run=run, seq=50).delete(),
    "the head": lambda run: Checkpoint.objects.filter(run=run, seq=73).delete(),
    "the first": lambda run: Checkpoint.objects.filter(run=run, seq=1).delete(),
    "a chunk": lambda run: Chunk.objects.filter(lineage=run.lineage).delete(),
}


def test_what_is_lost_is_missed(run: Run) -> None:
    for what, lose in LOST.items():
        with transaction.atomic():
            lose(run)
            assert verify_run(run), what
            transaction.set_rollback(True)


def test_the_command_says_what_it_found(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify", f"R-{run.pk}")
    assert "Everything stored is unaltered" in capsys.readouterr().out
    with damaged("checkpoints_checkpoint", "took_us", {"run_id": run.pk, "seq": 5}, 1), pytest.raises(CommandError):
        call_command("verify", str(run.pk))
    assert "number 5" in capsys.readouterr().err
    with pytest.raises(CommandError, match="no run nonsense"):
        call_command("verify", "nonsense")


def test_a_checkpoint_of_no_run_and_a_bad_chunk_are_found_by_the_whole_check(run: Run) -> None:
    with damaged("checkpoints_checkpoint", "run_id", {"run_id": run.pk, "seq": 73}, 2**40):
        assert any("belongs to no run" in str(problem) for problem in verify_all())


LEAVES = st.lists(
    st.binary(min_size=1, max_size=8).map(lambda data: hashlib.sha256(data).digest()), min_size=1, max_size=70
)


def rfc6962(leaves: list[bytes]) -> bytes:
    """The tree's root as RFC 6962, section 2.1, defines it."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + rfc6962(leaves[:split]) + rfc6962(leaves[split:])).digest()


@given(LEAVES)
def test_the_root_is_that_of_the_rfc(leaves: list[bytes]) -> None:
    assert merkle.root(leaves) == rfc6962(leaves)


@given(LEAVES, st.data())
def test_every_leaf_leads_to_the_root_at_its_own_place_alone(leaves: list[bytes], data: st.DataObject) -> None:
    tree = merkle.levels(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle.path(tree, index)
    assert merkle.climb(leaves[index], index, len(leaves), path) == tree[-1][0]
    other = data.draw(st.integers(-1, len(leaves) + 1))
    if not 0 <= other < len(leaves) or leaves[other] != leaves[index]:
        assert merkle.climb(leaves[index], other, len(leaves), path) != tree[-1][0]


@given(LEAVES, st.data())
def test_another_leaf_or_a_path_that_was_changed_leads_elsewhere(leaves: list[bytes], data: st.DataObject) -> None:
    tree = merkle.levels(leaves)
    index = data.draw(st.integers(0, len(leaves) - 1))
    path = merkle.path(tree, index)
    root = tree[-1][0]
    assert merkle.climb(bytes(32), index, len(leaves), path) != root
    assert merkle.climb(leaves[index], index, len(leaves), [*path, bytes(32)]) != root
    for at in range(len(path)):
        assert merkle.climb(leaves[index], index, len(leaves), path[:at] + path[at + 1 :]) != root
        assert merkle.climb(leaves[index], index, len(leaves), [*path[:at], bytes(32), *path[at + 1 :]]) != root
