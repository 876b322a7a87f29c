"""Holding a foretold impact to what happened. Each complaint is a sentence; none means that every word came true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agents.models import Effect
from approvals.impact import Impact
from approvals.impact.result import ImpactRow, ImpactVerdict
from approvals.models import Gate
from checkpoints.models import Checkpoint, Event, Run

RAN, STOOD, SKIPPED = "ran", "stood", "skipped"
SURE = {ImpactVerdict.WILL: RAN, ImpactVerdict.STANDS: STOOD, ImpactVerdict.SKIPPED: SKIPPED}
HOW = {"reused": STOOD, "skipped": SKIPPED}
OPEN = ("done", "intended", "unknown")


@dataclass(frozen=True)
class Before:
    """The effects as they were when the impact was foretold."""

    seq: int
    effects: dict[int, str]
    open: frozenset[int] = frozenset()  # those that somebody left open
    withheld: int = 0  # how often the world had drifted
    asked: frozenset[int] = frozenset()  # the gates that were open

    @classmethod
    def of(cls, run: Run) -> Before:
        rows = Effect.objects.filter(run=run, undoes__isnull=True)
        withheld = Event.objects.filter(run_id=run.pk, kind="effect.withheld").count()
        left = frozenset(row.pk for row in rows if row.left_open)
        asked = frozenset(Gate.objects.open().filter(run=run).values_list("pk", flat=True))
        return cls(run.seq, {row.pk: row.status for row in rows}, left, withheld, asked)


@dataclass(frozen=True)
class Horizon:
    """What happened until the run waited for people: (step, ran or stood) in order, and the gates that were opened."""

    happened: list[tuple[str, str]]
    asked: frozenset[str]
    recovery: bool
    ended: bool
    repaired: bool  # the run went back to where a refused output was made of
    withheld: bool  # the world was not what an effect was approved for

    @classmethod
    def of(cls, run: Run, before: Before, gates: list[Gate]) -> Horizon:
        """As things stand now. The first new checkpoint is the move itself."""
        rows = Checkpoint.objects.filter(run=run, seq__gt=before.seq + 1, kind__in=("step", "gate", *HOW))
        happened = [(step, HOW.get(kind, RAN)) for kind, step in rows.order_by("seq").values_list("kind", "step")]
        repaired = Checkpoint.objects.filter(run=run, seq__gt=before.seq + 1, kind="repair").exists()
        opened = Gate.objects.filter(run=run, pk__in=[gate.pk for gate in gates]).exclude(pk__in=before.asked)
        asked = frozenset(opened.values_list("step", flat=True))
        recovery = any(gate.kind == "recovery" for gate in gates)
        withheld = Event.objects.filter(run_id=run.pk, kind="effect.withheld").count() > before.withheld
        return cls(happened, asked, recovery, not gates, repaired, withheld)

    def failed(self) -> bool:
        """Whether an output was refused to the last, or the world drifted: that is not foretold."""
        return self.withheld or (self.recovery and self.repaired)


def complaints(impact: Impact, before: Before, horizon: Horizon, run: Run, *, said: str) -> Iterator[str]:
    """What was foretold and did not come true, and what happened and was not foretold.

    `said`: the step about which a question was answered, which may itself say what became of an effect, or end the run.
    """
    steps = [row for row in impact.ahead if not left_behind(row) and row.why != "told"]
    yield from _of_steps(steps, horizon)
    if not horizon.failed():
        yield from _of_the_end(impact, steps, horizon)
    yield from _of_effects(impact, before, run, said=said)
    if run.status == Run.Status.FAILED and not said:
        yield f"the run failed: {run.reason}"


def left_behind(row: ImpactRow) -> bool:
    """Whether the row is an effect off the path, not a step to come."""
    return row.verdict in (ImpactVerdict.UNDONE, ImpactVerdict.MAY_UNDONE, ImpactVerdict.CANNOT)


def _of_steps(steps: list[ImpactRow], horizon: Horizon) -> Iterator[str]:
    sure = []
    for row in steps:
        if row.verdict not in SURE or row.asks:
            break
        sure.append((row.step, SURE[row.verdict]))
    if horizon.happened[: len(sure)] != sure and not (horizon.repaired or horizon.withheld):
        yield f"foretold {sure} first, but {horizon.happened[: len(sure)]}"
    happened = Counter(horizon.happened)
    named = Counter((row.step, SURE[row.verdict]) for row in steps if row.verdict in SURE and not row.asks)
    loose = {row.step for row in steps if row.verdict is ImpactVerdict.MAY}
    for (step, how), count in named.items():
        if happened[step, how] < count and not _stopped_before(steps, horizon) and not horizon.failed():
            yield f"{step} {how} {happened[step, how]} times, foretold {count}"
    for (step, how), count in happened.items():
        if step not in loose and count > named[step, how]:
            yield f"{step} {how} {count} times, which was not named: foretold {named[step, how]}"


def _stopped_before(steps: list[ImpactRow], horizon: Horizon) -> bool:
    """Whether somebody was asked where the impact says that they may be: then what follows is another decision."""
    return any(row.asks and row.verdict is ImpactVerdict.MAY and row.step in horizon.asked for row in steps)


def _of_the_end(impact: Impact, steps: list[ImpactRow], horizon: Horizon) -> Iterator[str]:
    asking = {row.step for row in steps if row.asks}
    for step in sorted(horizon.asked - asking):
        how = "asked what to do" if horizon.recovery else "asked"
        yield f"{step} {how}, which was not named: {sorted(asking)}"
    if impact.asks and horizon.ended:
        yield f"{impact.asks} was to ask, and nobody was asked"
    if impact.ends and not horizon.ended:
        yield f"the run was to end, and {sorted(horizon.asked)} asked"


def _of_effects(impact: Impact, before: Before, run: Run, *, said: str) -> Iterator[str]:
    """Their fates at the end of the run, when everything that was left behind is settled."""
    rows = {row.effect: row for row in impact.ahead if row.effect and left_behind(row)}
    stands = [row for row in impact.rows if row.verdict is ImpactVerdict.STANDS]
    standing = {row.effect for row in stands if row.effect and row.why != "told"}
    asked = {row.step for row in impact.ahead if row.asks}
    for effect in Effect.objects.filter(run=run, undoes__isnull=True).order_by("pk"):
        was = before.effects.get(effect.pk)
        if was is None:
            continue
        row = rows.get(effect.pk)
        what = f"effect {effect.pk} of {effect.step}, {was} before and {effect.status} now"
        unclear = was in ("intended", "unknown") or effect.pk in before.open
        settled = effect.step == said or (unclear and effect.step in asked)
        stays = ("done", "kept", *(("failed", "unknown", "abandoned") if unclear else ()))  # perhaps never done
        if row is None and effect.status != was and not (was == "kept" and effect.status == "done") and not settled:
            yield f"{what}, was not named"
        elif row is not None and row.verdict is ImpactVerdict.UNDONE and effect.status != "undone":
            yield f"{what}, was to be undone"
        elif row is not None and row.verdict is ImpactVerdict.CANNOT and effect.status not in stays:
            yield f"{what}, was to stay as it is"
        if effect.pk in standing and (was not in ("done", "kept") or effect.status not in ("done", "kept")):
            yield f"{what}, was to stand"
