"""The heads that seals cover, beside the checkpoints that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.db.models import Max

from checkpoints.errors import ValueRefused
from checkpoints.models import Gap
from checkpoints.postgresql.sql import run_sql
from checkpoints.seals.problem import IntegrityProblem
from checkpoints.seals.seal import SealFact
from checkpoints.values.canonical_json import decode

from .removals import Removals

_THERE = """
SELECT w.run, w.seq FROM unnest($1::bigint[], $2::int[], $3::bytea[]) AS w (run, seq, digest)
JOIN checkpoints_checkpoint c ON c.run_id = w.run AND c.seq = w.seq AND c.digest = w.digest"""
_SOMEWHERE = """
SELECT DISTINCT c.run_id, c.digest FROM checkpoints_checkpoint c WHERE c.run_id = ANY($1) AND c.digest = ANY($2)"""


class SealedHead(NamedTuple):
    """A run's head as a seal covers it. `seq` is 0 where the seal was made before numbers were kept."""

    run: int
    seq: int
    digest: bytes


def check(seals: Iterable[SealFact], removals: Removals | None = None) -> Iterator[IntegrityProblem]:
    """Say which runs' heads are not there any more; each once, for the first seal that covers it."""
    removals = removals or Removals()
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
            number = f", checkpoint {head.seq}," if head.seq else ""
            why = f"; {wrong[head.run][0]}" if wrong.get(head.run) else ""
            yield IntegrityProblem(f"seal {wanted[head]}", f"the head that run {head.run} had{number} is gone{why}")


def heads_of(seal: SealFact) -> list[SealedHead]:
    """Return the heads that a seal covers. Raises ValueError, TypeError or AttributeError where they are no heads."""
    said: dict[str, Any] = decode(seal.heads or b"{}")
    found = []
    for run, head in said.items():
        seq, digest = head if isinstance(head, list) else (0, head)
        found.append(SealedHead(int(run), int(seq), bytes.fromhex(digest)))
    return found


def present(heads: list[SealedHead]) -> set[SealedHead]:
    """Return those of the heads whose checkpoint is stored."""
    numbered = [head for head in heads if head.seq]
    columns = [list(column) for column in zip(*numbered, strict=True)] or [[], [], []]
    found = {(run, seq) for run, seq in run_sql(_THERE, columns)} if numbered else set()
    others = [head for head in heads if not head.seq]
    somewhere: set[tuple[int, bytes]] = set()
    if others:
        pairs = run_sql(_SOMEWHERE, [[head.run for head in others], [head.digest for head in others]])
        somewhere = {(run, bytes(digest)) for run, digest in pairs}
    return {head for head in heads if (head.run, head.seq) in found or (head.run, head.digest) in somewhere}


def _pruned(heads: list[SealedHead], removals: Removals) -> tuple[set[SealedHead], dict[int, list[str]]]:
    """Return the heads that a sound gap accounts for; and by run, what is wrong with the gaps that do not count."""
    runs = Gap.objects.filter(run__in={head.run for head in heads}).values("run_id") if heads else Gap.objects.none()
    newest = dict(runs.annotate(newest=Max("number")).values_list("run_id", "newest"))
    found: set[SealedHead] = set()
    wrong: dict[int, list[str]] = {}
    for head in sorted(heads, key=lambda head: head.run):
        if head.run in newest:
            digests, wrong[head.run] = removals.of(head.run, newest[head.run])
            found |= {head} if head.digest in digests else set()
    return found, wrong
