"""Compares the run heads that seals cover with the stored checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.db.models import Max

from checkpoints.errors import ValueRefused
from checkpoints.models import Gap
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals.problem import IntegrityProblem
from checkpoints.seals.seal import SealFact
from checkpoints.values.canonical_json import decode_canonical

from .removals import Removals

_THERE = """
SELECT w.run, w.seq FROM unnest($1::bigint[], $2::int[], $3::bytea[]) AS w (run, seq, digest)
JOIN checkpoints_checkpoint c ON c.run_id = w.run AND c.seq = w.seq AND c.digest = w.digest"""


class SealedHead(NamedTuple):
    """A run's head as a seal covers it."""

    run: int
    seq: int
    digest: bytes


def check(seals: Iterable[SealFact], removals: Removals) -> Iterator[IntegrityProblem]:
    """Report sealed heads that are missing; each once, for the first seal that covers it."""
    wanted: dict[SealedHead, int] = {}
    for seal in seals:
        try:
            for head in heads_of(seal):
                wanted.setdefault(head, seal.id)
        except (ValueError, TypeError, AttributeError, ValueRefused):
            yield IntegrityProblem(f"seal {seal.id}", "its heads cannot be read")
    there = present(list(wanted))
    missing = [head for head in wanted if head not in there]
    pruned, wrong = _pruned(missing, removals)
    for head in missing:
        if head not in pruned:
            why = f"; {wrong[head.run][0]}" if wrong.get(head.run) else ""
            words = f"the head that run {head.run} had, checkpoint {head.seq}, is gone{why}"
            yield IntegrityProblem(f"seal {wanted[head]}", words)


def heads_of(seal: SealFact) -> list[SealedHead]:
    """Return the heads that a seal covers. Raises ValueError, TypeError or AttributeError if they are malformed."""
    values: dict[str, Any] = decode_canonical(seal.heads or b"{}")
    return [SealedHead(int(run), int(seq), bytes.fromhex(digest)) for run, (seq, digest) in values.items()]


def present(heads: list[SealedHead]) -> set[SealedHead]:
    """Return those of the heads whose checkpoint is stored."""
    if not heads:
        return set()
    found = {(run, seq) for run, seq in run_sql(_THERE, [list(column) for column in zip(*heads, strict=True)])}
    return {head for head in heads if (head.run, head.seq) in found}


def _pruned(heads: list[SealedHead], removals: Removals) -> tuple[set[SealedHead], dict[int, list[str]]]:
    """Return the heads that a sound gap accounts for, and by run the faults of the gaps that do not count."""
    runs = Gap.objects.filter(run__in={head.run for head in heads}).values("run_id") if heads else Gap.objects.none()
    newest = dict(runs.annotate(newest=Max("number")).values_list("run_id", "newest"))
    found: set[SealedHead] = set()
    wrong: dict[int, list[str]] = {}
    for head in sorted(heads, key=lambda head: head.run):
        if head.run in newest:
            digests, wrong[head.run] = removals.digests_of(head.run, newest[head.run])
            found |= {head} if head.digest in digests else set()
    return found, wrong
