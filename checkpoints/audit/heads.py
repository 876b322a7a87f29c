"""The heads that seals cover, beside the checkpoints that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from django.db.models import Max

from checkpoints.errors import ValueRefused
from checkpoints.models import Gap
from checkpoints.retention import gaps
from checkpoints.rows import run_sql
from checkpoints.values import decode

from .problem import Problem
from .seals import SealFact

_THERE = """
SELECT w.run, w.seq FROM unnest($1::bigint[], $2::int[], $3::bytea[]) AS w (run, seq, digest)
JOIN checkpoints_checkpoint c ON c.run_id = w.run AND c.seq = w.seq AND c.digest = w.digest"""
_SOMEWHERE = """
SELECT DISTINCT c.run_id, c.digest FROM checkpoints_checkpoint c WHERE c.run_id = ANY($1) AND c.digest = ANY($2)"""


class Head(NamedTuple):
    """A run's head as a seal covers it. `seq` is 0 where the seal was made before numbers were kept."""

    run: int
    seq: int
    digest: bytes


def check(seals: Iterable[SealFact]) -> Iterator[Problem]:
    """Say which runs' heads are not there any more; each once, for the first seal that covers it."""
    wanted: dict[Head, int] = {}
    for seal in seals:
        try:
            for head in heads_of(seal):
                wanted.setdefault(head, seal.id)
        except (ValueError, TypeError, AttributeError, ValueRefused):
            yield Problem(f"seal {seal.id}", "its heads cannot be read")
    there = present(list(wanted))
    for head, seal_id in wanted.items():
        if head not in there:
            number = f", checkpoint {head.seq}," if head.seq else ""
            yield Problem(f"seal {seal_id}", f"the head that run {head.run} had{number} is gone")


def heads_of(seal: SealFact) -> list[Head]:
    """The heads that a seal covers. Raises ValueError, TypeError or AttributeError where they are no heads."""
    said: dict[str, Any] = decode(seal.heads or b"{}")
    found = []
    for run, head in said.items():
        seq, digest = head if isinstance(head, list) else (0, head)
        found.append(Head(int(run), int(seq), bytes.fromhex(digest)))
    return found


def present(heads: list[Head]) -> set[Head]:
    """Those of the heads whose checkpoint is stored."""
    numbered = [head for head in heads if head.seq]
    columns = [list(column) for column in zip(*numbered, strict=True)] or [[], [], []]
    found = {(run, seq) for run, seq in run_sql(_THERE, columns)} if numbered else set()
    others = [head for head in heads if not head.seq]
    somewhere: set[tuple[int, bytes]] = set()
    if others:
        pairs = run_sql(_SOMEWHERE, [[head.run for head in others], [head.digest for head in others]])
        somewhere = {(run, bytes(digest)) for run, digest in pairs}
    there = {head for head in heads if (head.run, head.seq) in found or (head.run, head.digest) in somewhere}
    return there | _pruned([head for head in heads if head not in there])


def _pruned(heads: list[Head]) -> set[Head]:
    """Those of the heads whose checkpoint was pruned: its header stands in a gap."""
    runs = Gap.objects.filter(run__in={head.run for head in heads}).values("run_id") if heads else Gap.objects.none()
    newest = dict(runs.annotate(newest=Max("number")).values_list("run_id", "newest"))
    return {head for head in heads if head.run in newest and head.digest in gaps.digests_of(head.run, newest[head.run])}
