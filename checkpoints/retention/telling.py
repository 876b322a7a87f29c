"""A prune in words and as data: for the command, and for the pages of the administration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet, Sum

from checkpoints import actors
from checkpoints.models import Hold, Prune, PruneLine

from .rules import HELD, REASONS

RANGES = 8  # of one run that are named


class Held(NamedTuple):
    """A hold and how many checkpoints stay for it alone."""

    kind: str
    reason: str
    by: str
    checkpoints: int


class Told(NamedTuple):
    """What goes of one run."""

    run: int
    agent: str
    policy: str
    checkpoints: int
    size: int
    ranges: str
    kept: list[tuple[str, int]]
    held: list[Held]
    removed: int
    done: bool

    @property
    def words(self) -> str:
        """One line, for the command."""
        kept = ", ".join(f"{count} {reason}" for reason, count in self.kept)
        said = f"R-{self.run} ({self.agent}): {self.checkpoints:,} go ({self.ranges or 'none'}); kept: {kept or 'none'}"
        return "; ".join([said, *(f"{each.kind} “{each.reason}” keeps {each.checkpoints:,}" for each in self.held)])


class ByAgent(NamedTuple):
    """What goes of one agent's runs."""

    agent: str
    runs: int
    checkpoints: int
    size: int
    removed: int


def by_agent(prune: Prune) -> list[ByAgent]:
    """The sums, by agent."""
    found = prune.lines.values("agent").annotate(
        runs=Count("pk", filter=Q(checkpoints__gt=0)), gone=Sum("checkpoints"), bytes=Sum("size"), so_far=Sum("removed")
    )
    rows = found.order_by("agent").values_list("agent", "runs", "gone", "bytes", "so_far")
    return [ByAgent(*row) for row in rows]


def lines(prune: Prune, *, start: int = 0, limit: int = 50) -> list[Told]:
    """Some of the runs, those first of which most goes."""
    found = prune.lines.select_related("policy").order_by("-checkpoints", "run_id")[start : start + limit]
    return list(_told(list(found)))


def _told(found: Sequence[PruneLine]) -> Iterator[Told]:
    holds = Hold.objects.in_bulk({hold for line in found for hold, _ in line.held})
    names = actors.names(hold.by for hold in holds.values())
    for line in found:
        kept = [(REASONS[name], count) for name, count in line.kept.items() if name != HELD]
        yield Told(
            line.run_id, line.agent, str(line.policy), line.checkpoints, line.size, ranges(line.ranges), kept,
            [_held(holds[hold], count, names) for hold, count in line.held if hold in holds], line.removed, line.done,
        )  # fmt: skip


def _held(hold: Hold, count: int, names: Mapping[str, str]) -> Held:
    return Held(hold.get_kind_display(), hold.reason, names[hold.by], count)


def ranges(found: Sequence[Sequence[int]]) -> str:
    """Numbers as people read them: "1 to 980, 985"."""
    said = [f"{first} to {last}" if first != last else str(first) for first, last in found[:RANGES]]
    return ", ".join(said) + (f" and {len(found) - RANGES} more stretches" if len(found) > RANGES else "")


def held(prune: Prune) -> list[tuple[str, int]]:
    """How many checkpoints stay for holds alone, by the kind of hold."""
    counts: Counter[int] = Counter()
    for each in prune.lines.exclude(held=[]).values_list("held", flat=True).iterator():
        counts.update(dict(each))
    kinds = _kinds(counts)
    found: Counter[str] = Counter()
    for hold, count in counts.items():
        found[kinds.get(hold, "")] += count
    labels = dict(Hold.Kind.choices)
    return [(str(labels.get(kind, "freed since")), count) for kind, count in sorted(found.items())]


def _kinds(holds: Iterable[int]) -> dict[int, str]:
    return dict(Hold.objects.filter(pk__in=list(holds)).values_list("pk", "kind"))


def made_since(prune: Prune) -> QuerySet[Hold]:
    """The holds on runs of this prune that were made after its look, which keep what they protect."""
    return Hold.objects.standing().filter(run__in=prune.lines.values("run"), created_at__gt=prune.at)


def facts(prune: Prune) -> dict[str, Any]:
    """The whole prune as data."""
    every = prune.lines.select_related("policy").order_by("run_id")
    return {
        "prune": prune.pk,
        "status": prune.status,
        "at": prune.at.isoformat(),
        "digest": bytes(prune.digest).hex(),
        "runs_looked_at": prune.runs,
        "checkpoints": prune.checkpoints,
        "bytes": prune.size,
        "removed": prune.removed,
        "freed": prune.freed,
        "runs": [
            {
                "run": line.run_id, "agent": line.agent, "policy": line.policy.called,
                "version": line.policy.version, "checkpoints": line.checkpoints, "bytes": line.size,
                "ranges": line.ranges, "kept": line.kept, "held": line.held, "removed": line.removed,
            }
            for line in every.iterator()
        ],
    }  # fmt: skip
