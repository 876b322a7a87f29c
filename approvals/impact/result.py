"""The impact: one row for each step that it names, in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.utils.functional import cached_property

from checkpoints.runs.plans import in_words
from checkpoints.values import digests


class ImpactVerdict(StrEnum):
    """The predicted fate of a step, or of an effect that was done before."""

    WILL = "will"  # runs; at a gate: asks
    MAY = "may"  # runs or not
    SKIPPED = "skipped"  # an effect is skipped: people refuse it, or answer in its place
    STANDS = "stands"  # the recorded result is used; at a gate: nobody is asked
    UNDONE = "undone"  # an effect is taken back
    MAY_UNDONE = "may_undone"  # undone, unless a step adopts it
    CANNOT = "cannot"  # it stays as it is, since nothing takes it back


@dataclass(frozen=True, kw_only=True)
class ImpactRow:
    """One step, or one effect that the choice leaves behind.

    `on`: the steps on whose output it depends, where it is not certain. `why` is one word: new (it never ran), input
    (its input differs), forced (a person sends the run there), world (it calls an external system), novel (it reads a
    person's words), reads (its input is not known yet), flow (it is not known yet whether the run comes there), repair
    (a later step's refused output may send the run back to it), same (recorded with this input), adopted (done with
    this input), told (a person gives its output), path (before the target), permit (it needs a permission first),
    takeover (another run has done it), doubt (its outcome is unknown), guard (its loop guard is reached), reject or
    respond (people refuse it, or answer in its place), left (an effect off the path), unsettled (left behind, with
    unknown outcome).
    """

    step: str
    kind: str  # step, effect, gate
    verdict: ImpactVerdict
    on: tuple[str, ...] = ()
    why: str = ""
    asks: bool = False  # a person is asked here
    effect: int = 0  # the id of the effect that stands, or is left behind
    irreversible: bool = False  # it cannot be undone
    again: bool = False  # it is done once more, as a person sends the run back to it
    kept: bool = False  # it is on the path before the target
    took: timedelta | None = None  # of its last run
    origin: int = 0  # the other run that performed the effect; 0: this run

    @property
    def asks_alone(self) -> bool:
        """Tell whether the step only asks here, and does not run whatever is answered."""
        return self.asks and (self.kind == "gate" or self.why == "unsettled")

    def to_json(self, title: str) -> dict[str, Any]:
        """Return a JSON object with every field; `took` in seconds."""
        seconds = None if self.took is None else round(self.took.total_seconds(), 6)
        return {**self.bound(), "took": seconds, "title": title}

    def bound(self) -> dict[str, Any]:
        """Return the parts that a digest covers: neither times nor words."""
        names = ("step", "kind", "why", "asks", "effect", "irreversible", "again", "kept")
        return {"verdict": str(self.verdict), "on": list(self.on), **{name: getattr(self, name) for name in names}}


class ChildVerdict(StrEnum):
    """The predicted fate of a run that this one started, or that the origin of a fork did."""

    STANDS = "stands"  # the run goes on counting on it
    UNDONE = "undone"  # its effects are undone, and it ends
    MAY_UNDONE = "may_undone"  # undone, unless an equal start takes it over
    CANCELLED = "cancelled"  # it ends, and its effects stay
    READ = "read"  # a fork reads its result where it starts an equal one
    ANEW = "anew"  # a fork starts another where it starts an equal one


ENDING = (ChildVerdict.UNDONE, ChildVerdict.MAY_UNDONE, ChildVerdict.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpactChild:
    """One run that this one started, or that the origin of a fork did.

    `undone`: the steps of its effects that are taken back; `cannot`: of those that stay as they are.
    """

    run: int
    fate: ChildVerdict
    undone: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"run": self.run, "fate": str(self.fate), "undone": list(self.undone), "cannot": list(self.cannot)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsInside:
    """The tools that a step called inside it, which the choice leaves behind: nothing undoes them."""

    checkpoint: int  # the number of the checkpoint that the step saved
    tools: tuple[str, ...]  # their names: data, never markup

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"checkpoint": self.checkpoint, "tools": list(self.tools)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One effect that was done before, or may have been, and would be repeated."""

    effect: int  # the id of the earlier effect
    step: str
    action: str = ""  # the id of the action that would do it again; empty where no action of the card does
    titles: tuple[str, ...] = ()  # the step's and that action's, for people: data, never markup
    run: int = 0  # the run that did it
    checkpoint: int = 0  # the number of the checkpoint with its result; 0: none
    at: datetime | None = None
    done: bool = True  # False: nobody knows whether it was
    certain: bool = True  # False: the choice may repeat it
    irreversible: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; `at` as ISO 8601."""
        names = ("effect", "step", "action", "run", "checkpoint", "done", "certain", "irreversible")
        plain = {name: getattr(self, name) for name in names}
        return plain | {"title": "".join(self.titles[:1]), "at": self.at.isoformat() if self.at else None}


@dataclass(frozen=True, kw_only=True)
class Impact:
    """The impact of a choice. `asks`: the step that certainly asks a person, at which the rows end."""

    rows: tuple[ImpactRow, ...] = ()
    asks: str = ""
    ends: bool = False  # the run certainly ends, without asking anybody
    children: tuple[ImpactChild, ...] = ()  # what becomes of the runs that the run started
    repeats: tuple[Repeat, ...] = ()  # earlier effects that the choice would repeat; see `repeats`
    inside: tuple[ToolsInside, ...] = ()  # called inside the steps that it leaves behind
    deadline: datetime | None = field(default=None, compare=False)  # the run's that has passed, and is taken off
    titles: Mapping[str, str] = field(default_factory=dict, compare=False)  # step -> its title
    beside: tuple[str, ...] = field(default=(), compare=False)  # the other gates that are open now

    def title_of(self, step: str) -> str:
        """Return the title of a step."""
        return self.titles.get(step) or in_words(step)

    def called(self, rows: Iterable[ImpactRow]) -> tuple[str, ...]:
        """Return the titles of these rows' steps, each once, in order."""
        return tuple(map(self.title_of, names(rows)))

    def having(self, *verdicts: ImpactVerdict, kind: str = "") -> tuple[ImpactRow, ...]:
        """List the rows after the target with one of these verdicts."""
        return tuple(row for row in self.ahead if row.verdict in verdicts and kind in ("", row.kind))

    @cached_property
    def kept(self) -> tuple[ImpactRow, ...]:
        """List the executions before the target."""
        return tuple(row for row in self.rows if row.kept)

    @cached_property
    def ahead(self) -> tuple[ImpactRow, ...]:
        """List all rows after the target."""
        return tuple(row for row in self.rows if not row.kept)

    @property
    def will(self) -> tuple[ImpactRow, ...]:
        """List the steps that run; a gate that asks is in `asking`."""
        return tuple(row for row in self.having(ImpactVerdict.WILL) if not row.asks)

    @property
    def undone(self) -> tuple[ImpactRow, ...]:
        return self.having(ImpactVerdict.UNDONE)

    @property
    def may_undone(self) -> tuple[ImpactRow, ...]:
        return tuple(row for row in self.rows if row.verdict is ImpactVerdict.MAY_UNDONE)

    @property
    def cannot(self) -> tuple[ImpactRow, ...]:
        return tuple(row for row in self.rows if row.verdict is ImpactVerdict.CANNOT)

    @property
    def asking(self) -> tuple[ImpactRow, ...]:
        """List the rows at which a person is asked, or may be."""
        return tuple(row for row in self.having(ImpactVerdict.WILL, ImpactVerdict.MAY) if row.asks)

    @property
    def repeated(self) -> tuple[ImpactRow, ...]:
        """List the effects that cannot be undone and are done again: they need a confirmation."""
        return tuple(row for row in self.cannot if row.again)

    def digest(self) -> str:
        """Return a hex digest, which covers the steps, effects, reasons and children left behind, but no times."""
        said: list[Any] = ["impact", self.asks, self.ends, [row.bound() for row in self.rows]]
        left = [child for child in self.children if child.fate is not ChildVerdict.STANDS]
        said += [[[child.run, str(child.fate), list(child.cannot)] for child in left]] if left else []
        said += [["inside", [each.to_json() for each in self.inside]]] if self.inside else []
        return digests.of_value(said).hex()

    def does_as(self, other: Impact) -> bool:
        """Tell whether both impacts do the same, for whatever reasons."""
        plain = [[replace(row, why="").bound() for row in each.rows] for each in (self, other)]
        return (self.asks, self.ends, plain[0]) == (other.asks, other.ends, plain[1])

    def acts(self) -> set[str]:
        """Return what it does to the world, or may do: effects it performs, undoes and repeats, runs it ends."""
        runs = {
            f"run:{row.step}"
            for row in self.having(ImpactVerdict.WILL, ImpactVerdict.MAY, kind="effect")
            if not row.asks_alone
        }
        undone = {f"undo:{row.effect}" for row in self.having(ImpactVerdict.UNDONE, ImpactVerdict.MAY_UNDONE)}
        ended = {f"{child.fate}:{child.run}" for child in self.children if child.fate in ENDING}
        return runs | undone | ended | {f"repeat:{each.effect}:{each.action}" for each in self.repeats}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: the rows in order, a count of each verdict, where it ends, and its digest."""
        counts = {str(verdict): sum(row.verdict is verdict for row in self.rows) for verdict in ImpactVerdict}
        rows = [row.to_json(self.titles.get(row.step, "")) for row in self.rows]
        children = [child.to_json() for child in self.children]
        told = {"asks": self.asks, "ends": self.ends, "counts": counts, "rows": rows, "children": children}
        deadline = self.deadline.isoformat() if self.deadline else None
        return {
            "digest": self.digest(), **told, "repeats": [each.to_json() for each in self.repeats],
            "inside": [each.to_json() for each in self.inside], "deadline": deadline,
        }  # fmt: skip


def names(rows: Iterable[ImpactRow]) -> tuple[str, ...]:
    """List the steps of these rows, each once, in order."""
    return tuple(dict.fromkeys(row.step for row in rows))
