"""Names checkpoints that do not bear the proof that a process with the key saved them.

A save writes the proof beside its row. Rows from before, and from processes of the release before, have none: once the
update is finished, proven events hold the last number without one of each such run. A row after that needs a proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from django.db import transaction
from psycopg.types.numeric import Int4, Int8

from checkpoints.actors import SYSTEM
from checkpoints.events.event_log import Entry, append_events
from checkpoints.events.event_proof import CHECKPOINTS, ROWS, is_of_digest, seal_key
from checkpoints.layout.assembly import name_of_checkpoint
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals.problem import IntegrityProblem

from .covered_rows import UNPROVEN, covering_events

NO_PROOF = "bears no proof: somebody wrote it who does not have the key that is set here"
PART = 20_000  # runs that one event holds
PAGE = 5_000  # checkpoints that one statement reads
_WITHOUT = "SELECT run_id, max(seq) FROM checkpoints_checkpoint WHERE proof IS NULL GROUP BY run_id ORDER BY run_id"
_OF_RUN = f"""
SELECT id, seq, digest, proof FROM checkpoints_checkpoint WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT {PAGE}"""  # noqa: S608 - a constant


def require(*, finish: bool) -> None:
    """Let checkpoints count as saved here only with a proof, from now on and for good; those from before are named.

    At the end of an update, since the release before writes none; with the key. Once in a database, whatever key signed
    it: with another key nobody vouches again for what was slipped in meanwhile.
    """
    if not seal_key() or not finish or covering_events([CHECKPOINTS]):
        return
    with transaction.atomic():
        before = [(str(run), seq) for run, seq in run_sql(_WITHOUT, [])]
        parts = [before[at : at + PART] for at in range(0, len(before), PART)] or [[]]
        entries = [
            Entry(kind="seal.checkpoints", subject=CHECKPOINTS, by=SYSTEM, data={ROWS: {}, "unproven": dict(part)})
            for part in parts
        ]
        append_events(entries)


def _last_without() -> dict[str, int] | None:
    """Return the last number without a proof that counts, by run; None where proofs are not required."""
    events = covering_events([CHECKPOINTS]) if seal_key() else []
    parts = [event.data["unproven"] for event in events if event.holds]
    return {run: seq for part in parts for run, seq in part.items()} if events else None


class CheckpointProofs:
    """Checks the proofs of any number of runs."""

    def __init__(self) -> None:
        self.last_without = _last_without()

    def check(self, run: int) -> Iterator[IntegrityProblem]:
        """Yield the run's checkpoints that lack their proof, or bear one of another key; those in a row as one."""
        for fault, group in groupby(self._faults(run), key=itemgetter(0)):
            (_, first, seq), *more = group
            alone = name_of_checkpoint(first, run, seq)
            subject = f"{len(more) + 1:,} checkpoints from {seq} to {more[-1][2]} (run {run})" if more else alone
            yield IntegrityProblem(subject, fault)

    def _faults(self, run: int) -> Iterator[tuple[str, UUID, int]]:
        after = 0
        while found := run_sql(_OF_RUN, [Int8(run), Int4(after)]):
            for id, seq, digest, proof in found:
                if fault := self._fault(run, seq, digest, proof):
                    yield fault, id, seq
            after = found[-1][1]

    def _fault(self, run: int, seq: int, digest: bytes, proof: bytes | None) -> str:
        if proof is not None:
            return "" if is_of_digest(proof, digest) else UNPROVEN
        required = self.last_without is not None and seq > self.last_without.get(str(run), 0)
        return NO_PROOF if required else ""
