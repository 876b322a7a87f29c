"""A prune as text and as data, for the command and for the pages of the administration; counts what stayed, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Count, F, Q, QuerySet, Sum
from django.template.defaultfilters import filesizeformat

from checkpoints import actors
from checkpoints.models import Hold, Prune, PruneLine

from . import reading, rules

POLICY, FAULT, MOVED = "policy", "fault", "moved"
REASONS = rules.REASONS | {
    POLICY: "the policy was changed meanwhile",
    FAULT: "the stored data failed its integrity check",
    MOVED: "the run was being changed meanwhile",
}
RANGES = 8  # ranges of one run that are named
RUNS = 50  # runs for which a page shows what stayed after all


class KeptBack(NamedTuple):
    """The number of a run's checkpoints that stayed for one reason; `hold` is the hold's id if a hold is the reason."""

    reason: str
    hold: int | None
    checkpoints: int


def count_by_reason(line: PruneLine, *, counts: bool) -> list[KeptBack]:
    """Count by reason the checkpoints that the line lists and that still exist.

    `counts`: whether the line's policy is still in force.
    """
    history = reading.for_rules(line.run_id)
    there = rules.within([place.seq for place in history.places], line.ranges)
    if not there:
        return []
    if line.fault or not counts:
        return [KeptBack(FAULT if line.fault else POLICY, None, len(there))]
    verdict = rules.decide(history, line.policy, line.prune.at)
    holders = {seq: hold for hold, seqs in verdict.by_hold.items() for seq in seqs}
    found = Counter((verdict.reasons.get(seq, MOVED), holders.get(seq)) for seq in there)
    return [KeptBack(reason, hold, count) for (reason, hold), count in sorted(found.items(), key=lambda item: item[1])]


class HoldLine(NamedTuple):
    """A hold and the number of checkpoints that only it keeps."""

    kind: str
    reason: str
    by: str
    checkpoints: int


class RunPruneWords(NamedTuple):
    """A prune's line in words: what to remove from one run, and what stays, by reason and by hold."""

    line: PruneLine
    ranges: str
    reasons: list[tuple[str, int]]
    holds: list[HoldLine]

    @property
    def words(self) -> str:
        """Describe the line in one line of text, for the command."""
        line, kept = self.line, ", ".join(f"{count} {reason}" for reason, count in self.reasons)
        goes = f"R-{line.run_id} ({line.agent}): {line.checkpoints:,} go ({self.ranges or 'none'})"
        goes += f", and {line.signals_and_waits:,} signals and waits" if line.signals_and_waits else ""
        holds = (f"{item.kind} “{item.reason}” keeps {item.checkpoints:,}" for item in self.holds)
        return "; ".join([goes, f"kept: {kept or 'none'}", *holds])


class KeptAfterAll(NamedTuple):
    """The number of one run's checkpoints that the dry run listed and that stayed, and why."""

    run: int
    checkpoints: int
    why: str


def by_agent(prune: Prune) -> Iterable[Mapping[str, Any]]:
    """Return the sums by agent: what to remove from its runs, and what was removed."""
    found = prune.lines.values("agent").annotate(
        runs=Count("pk", filter=Q(checkpoints__gt=0) | Q(signals_and_waits__gt=0)),
        shown=Sum("checkpoints"), bytes=Sum("size"),
        gone=Sum("removed"), stayed=Sum("checkpoints") - Sum("removed"), net=Sum("freed"),
    )  # fmt: skip
    return found.order_by("agent")


def lines(prune: Prune, *, start: int = 0, limit: int = 50) -> Iterator[RunPruneWords]:
    """Yield some of the lines in words, those with the most to remove first."""
    found = list(prune.lines.select_related("policy").order_by("-checkpoints", "run_id")[start : start + limit])
    held = {line.pk: [*line.held, *([hold, count] for _, hold, count in line.stayed if hold)] for line in found}
    holds = Hold.objects.in_bulk({hold for value in held.values() for hold, _ in value})
    names = actors.names(hold.by for hold in holds.values())
    for line in found:
        kept = [(REASONS[name], count) for name, count in line.kept.items() if name != rules.HELD]
        mine = [(holds[pk], count) for pk, count in held[line.pk] if pk in holds]
        words = [HoldLine(hold.get_kind_display(), hold.reason, names[hold.by], count) for hold, count in mine]
        yield RunPruneWords(line, ranges(line.ranges), kept, words)


def ranges(pairs: Sequence[Sequence[int]]) -> str:
    """Write ranges for people: "1 to 980, 985"."""
    lines = [f"{first} to {last}" if first != last else str(first) for first, last in pairs[:RANGES]]
    if len(pairs) <= RANGES:
        return ", ".join(lines)
    return f"{', '.join(lines)} and {len(pairs) - RANGES} more stretches"


def count_by_hold_kind(prune: Prune) -> list[tuple[str, int]]:
    """Count the checkpoints that only holds keep, by the kind of hold: those of the dry run and those of the prune."""
    counts: Counter[int] = Counter()
    for kept, stayed in prune.lines.exclude(held=[], stayed=[]).values_list("held", "stayed").iterator():
        counts.update(dict(kept))
        counts.update({hold: count for _, hold, count in stayed if hold is not None})
    kinds = dict(Hold.objects.filter(pk__in=list(counts)).values_list("pk", "kind"))
    found: Counter[str] = Counter()
    for hold, count in counts.items():
        if hold in kinds:
            found[kinds[hold]] += count
    labels = dict(Hold.Kind.choices)
    return [(str(labels[kind]), count) for kind, count in sorted(found.items())]


def kept_after_all(prune: Prune) -> Iterator[KeptAfterAll]:
    """Yield, run by run, what the dry run listed and is not removed, with the reason; nothing before it is applied."""
    if prune.started_at is None:
        return
    lines = list(prune.lines.filter(removed__lt=F("checkpoints")).order_by("run_id")[:RUNS])
    holds = Hold.objects.in_bulk({hold for line in lines for _, hold, _ in line.stayed if hold is not None})
    names = actors.names(hold.by for hold in holds.values())
    for line in lines:
        known = 0
        for reason, hold, count in line.stayed:
            known += count
            yield KeptAfterAll(line.run_id, count, _why(holds.get(hold), names) if hold else REASONS[reason])
        if left := line.checkpoints - line.removed - known:
            applying = prune.status == Prune.Status.APPLYING
            why = "not deleted yet" if applying else "the prune was stopped before it reached them"
            yield KeptAfterAll(line.run_id, left, "" if line.done else why)


def freed(prune: Prune) -> str:
    """Say how much the prune freed so far.

    If little was deleted, the new anchors may take more space than the removal frees.
    """
    if prune.freed < 0:
        return f"which takes {filesizeformat(-prune.freed)} more than before"
    return f"{filesizeformat(prune.freed)} freed"


def files(prune: Prune) -> int:
    """Return the bytes that a nightly prune freed by removing artifact files."""
    return prune.freed - (prune.lines.aggregate(freed=Sum("freed"))["freed"] or 0)


def _why(hold: Hold | None, names: Mapping[str, str]) -> str:
    if hold is None:
        return "held"
    return f"{hold.get_kind_display().lower()} “{hold.reason}” ({names[hold.by]})"


def made_since(prune: Prune) -> QuerySet[Hold]:
    """Return the holds made on runs of this prune after its dry run; what they protect stays."""
    return Hold.objects.standing().filter(run__in=prune.lines.values("run"), created_at__gt=prune.at)


def facts(prune: Prune) -> dict[str, Any]:
    """Return the whole prune as data."""
    every = prune.lines.select_related("policy").order_by("run_id")
    rows = prune.signals_and_waits
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
        "signals_and_waits": rows["shown"],
        "signals_and_waits_removed": rows["gone"],
        "runs": [
            {
                "run": line.run_id, "agent": line.agent, "policy": line.policy.called,
                "version": line.policy.version, "checkpoints": line.checkpoints, "bytes": line.size,
                "ranges": line.ranges, "kept": line.kept, "held": line.held, "removed": line.removed,
                "freed": line.freed, "stayed": line.stayed, "signals_and_waits": line.signals_and_waits,
                "signals_and_waits_removed": line.signals_and_waits_removed,
            }
            for line in every.iterator()
        ],
    }  # fmt: skip
