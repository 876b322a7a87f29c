"""Verifies stored runs: every column of every checkpoint and chunk of a run, from the first on.

A load checks what it reads. This checks everything: that the numbers have no hole, each row's digest and its
parent's, the state after each row, every anchor from its own chunks, and that the run is at its head. Where rows were
removed, their gaps have to span exactly what is missing, and to give the digests that the rows around them name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from uuid import UUID

from checkpoints.errors import NotVerified
from checkpoints.layout import rows
from checkpoints.layout.assembly import Assembly, ChunkContents, make_fetcher, name_of, read_chunk
from checkpoints.layout.rows import CheckpointRow
from checkpoints.models import Checkpoint, Chunk, Gap, Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.store import gaps
from checkpoints.values import digests

from . import covered_rows, database, removals
from .covered_rows import CheckpointProofs


def verify_run(run: Run) -> list[IntegrityProblem]:
    """Return what is wrong with a run's checkpoints and covered rows; empty if all is as written."""
    return [*_checkpoints(run), *CheckpointProofs().check(run.pk), *covered_rows.check_run(run.pk)]


def _checkpoints(run: Run) -> list[IntegrityProblem]:
    walk = _Walk(run)
    stretches = sorted(_gaps(run.pk, walk.problems), key=lambda gap: gap.first_seq)
    for row in chain.from_iterable(rows.pages(run.pk)):
        while stretches and stretches[0].first_seq <= row.seq:
            walk.skip(stretches.pop(0))
        walk.visit(row)
    for gap in stretches:
        walk.skip(gap)
    return walk.end()


def verify_all() -> list[IntegrityProblem]:
    """Return what is wrong in any run, row without a run, chunk or seal."""
    proofs, problems = CheckpointProofs(), list[IntegrityProblem]()
    for run in Run.objects.order_by("pk").iterator():
        problems += [*_checkpoints(run), *proofs.check(run.pk)]
    strays = Checkpoint.objects.exclude(run_id__in=Run.objects.values("pk")).values_list("pk", flat=True)
    problems += [IntegrityProblem(f"checkpoint {id}", "belongs to no run") for id in strays]
    for chunk in Chunk.objects.iterator(chunk_size=50):
        stored = (bytes(chunk.digest), chunk.codec, bytes(chunk.payload), bytes(chunk.checksum))
        try:
            content, _ = read_chunk(chunk.lineage, *stored)
        except NotVerified as error:
            problems.append(IntegrityProblem(error.subject, error.reason))
            continue
        if stored[0] not in (digests.of_segment(content), digests.of_canonical(content)):
            problems.append(
                IntegrityProblem(f"chunk {digests.shorten_digest(stored[0])}", "the content does not match its digest")
            )
    return [*dict.fromkeys(problems), *database.verify()]


def _gaps(run_id: int, problems: list[IntegrityProblem]) -> Iterator[Gap]:
    """Yield the run's gaps that have no faults; add the faults and doubts of all to `problems`."""
    for gap, faults, doubts in removals.judged(run_id):
        problems += [IntegrityProblem(f"gap {gap.number} (run {run_id})", reason) for reason in (*faults, *doubts)]
        if not faults:
            yield gap
    problems += removals.unreadable(run_id)


class _Walk:
    """One pass over a run's rows in the order of their numbers."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.contents = ChunkContents(make_fetcher(run.lineage))
        self.assembly: Assembly | None = None
        self.digests: dict[UUID, bytes] = {}
        self.seq = 0
        self.newest: CheckpointRow | None = None
        self.elsewhere: dict[UUID, bytes] | None = None
        self.problems: list[IntegrityProblem] = []

    def visit(self, row: CheckpointRow) -> None:
        if row.seq != self.seq + 1:
            where = "what is between is gone" if row.seq > self.seq else "a gap says that it was removed"
            self._say(row, f"follows number {self.seq}: {where}")
        self.seq, self.newest = max(self.seq, row.seq), row
        if row.header_digest() != row.digest:
            self._say(row, "its columns do not match its digest")
        if self._parent_digest(row.parent) != row.parent_digest:
            self._say(row, "its parent is not the checkpoint it was saved on")
        self.digests[row.id] = row.digest
        self._apply(row)

    def skip(self, gap: Gap) -> None:
        """Continue after a gap, whose headers replace the removed rows."""
        name = f"gap {gap.number} (run {gap.run_id})"
        if gap.first_seq != self.seq + 1:
            self.problems.append(
                IntegrityProblem(name, f"begins at {gap.first_seq}, what is before it ends at {self.seq}")
            )
        for row in gaps.removed(gap):
            parent = row.header[gaps.PARENT]
            if self._parent_digest(UUID(bytes=parent) if parent else None) != row.header[gaps.PARENT_DIGEST]:
                self.problems.append(
                    IntegrityProblem(name, f"the parent of {row.id} is not the checkpoint it was saved on")
                )
            self.digests[row.id] = row.digest
        self.seq = max(self.seq, gap.last_seq)

    def _apply(self, row: CheckpointRow) -> None:
        """Check the state after this row. After a fault, checking resumes at the next anchor."""
        if row.anchor_seq == row.seq or self.assembly is None:
            self.assembly = Assembly(self.contents)
        try:
            self.assembly.feed(row)
            if row.anchor_seq == row.seq:
                self.assembly.finish()  # with the values, as a load: no digest covers which lines are said to be large
            else:
                self.assembly.check()
        except NotVerified as error:
            self.assembly = None
            self.problems.append(IntegrityProblem(error.subject, error.reason))

    def _parent_digest(self, parent: UUID | None) -> bytes | None:
        if parent is None or parent in self.digests:
            return self.digests.get(parent) if parent else None
        # The parent of a fork's first checkpoint is of another run; so is that of one that was rewound past it.
        found = Checkpoint.objects.filter(pk=parent, run__lineage=self.run.lineage).values_list("digest", flat=True)
        return next((bytes(digest) for digest in found), None) or self._removed_elsewhere().get(parent)

    def _removed_elsewhere(self) -> dict[UUID, bytes]:
        """Return the digests of checkpoints that gaps of the lineage's other runs removed, by id."""
        if self.elsewhere is None:
            kin = Run.objects.of_lineage(self.run.lineage).exclude(pk=self.run.pk)
            found = Gap.objects.filter(run__in=kin).order_by("run_id", "number")
            with suppress(ValueError):  # which the verification of that run reports
                self.elsewhere = {}
                for gap in found:
                    self.elsewhere |= {row.id: row.digest for row in gaps.removed(gap)}
        return self.elsewhere or {}

    def _say(self, row: CheckpointRow, reason: str) -> None:
        self.problems.append(IntegrityProblem(name_of(row), reason))

    def end(self) -> list[IntegrityProblem]:
        """Return all problems, including contradictions between the run's own row and its checkpoints."""
        for head, seq, next_step in run_sql(
            "SELECT head, seq, next_step FROM checkpoints_run WHERE id = $1", [self.run.pk]
        ):
            self.problems += [
                IntegrityProblem(f"run {self.run.pk}", reason) for reason in self._misplaced(head, seq, next_step)
            ]
        return list(dict.fromkeys(self.problems))

    def _misplaced(self, head: UUID | None, seq: int, next_step: str) -> Iterator[str]:
        if head not in self.digests:
            yield "its head is missing"
        elif self.newest is not None and head != self.newest.id:
            yield "its head is not its newest checkpoint"
        if seq > self.seq:
            yield f"its newest checkpoint is {self.seq}, it saved more"
        elif self.newest is not None and next_step != self.newest.next_step:
            yield f"it would go on with {next_step!r}, its head says {self.newest.next_step!r}"
