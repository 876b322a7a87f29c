"""The impact of an order, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from agents.api.protocol import ApiSchema, one_of
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import ChildVerdict

DIGEST = "9c1d0e2f3a4b5c6d7e8f90a1b2c3d4e59c1d0e2f3a4b5c6d7e8f90a1b2c3d4e5"


class Consequence(ApiSchema):
    """The consequence for one step, or for one effect that the run leaves behind."""

    example: ClassVar = {
        "step": "pay", "kind": "effect", "verdict": "undone", "on": [], "why": "left", "asks": False, "effect": 12,
        "irreversible": False, "again": False, "kept": False, "took": 0.072, "title": "",
    }  # fmt: skip

    step: str
    """Its name."""
    kind: str
    """step, effect or gate."""
    verdict: Annotated[str, one_of(ImpactVerdict)]
    """will: it runs, or asks. may: it may run. skipped: it does not run, since people reject it or answer instead.
    stands: its recorded result is used. undone: it is undone. may_undone: it is undone unless a step reuses it.
    cannot: it is kept and cannot be undone."""
    on: list[str]
    """If it is not certain: the steps whose output it depends on."""
    why: str
    """The reason, as a code."""
    asks: bool
    """Whether a person is asked here."""
    effect: int
    """The number of the effect that is kept, reused or undone; 0: none."""
    irreversible: bool
    """Whether it cannot be undone once it has run."""
    again: bool
    """Whether the run is sent back to it, so that it runs again."""
    kept: bool
    """Whether it is before the point from which the run goes on."""
    took: float | None
    """How many seconds it took when it last ran; null: it never ran."""
    title: str
    """What it did, for people: data, never markup."""


class RepeatedEffect(ApiSchema):
    """An effect that was done, or may have been, and would be done once more."""

    example: ClassVar = {
        "effect": 12, "step": "reply", "action": "", "title": "Send an e-mail", "run": 7, "checkpoint": 8,
        "at": "2026-11-22T16:18:02.104112Z", "done": True, "certain": True, "irreversible": True,
    }  # fmt: skip

    effect: int
    """Its number: what a decision sends in `confirm`."""
    step: str
    """Its step."""
    action: str
    """The card's action that would repeat it, by id; empty: none."""
    title: str
    """The title of that action: data, never markup."""
    run: int
    """The run that performed it: this one, or another of its lineage."""
    checkpoint: int
    """The checkpoint that holds its result; 0: none."""
    at: datetime | None
    """When."""
    done: bool
    """Whether it was certainly performed; otherwise nobody knows."""
    certain: bool
    """Whether it is certainly repeated; otherwise it may be."""
    irreversible: bool
    """Whether it cannot be undone."""


class ChildFate(ApiSchema):
    """The fate of a run that a step of this one started."""

    example: ClassVar = {"run": 8, "fate": "may_undone", "undone": ["pay"], "cannot": ["tell"]}

    run: int
    """Its number."""
    fate: Annotated[str, one_of(tuple(map(str, ChildVerdict)))]
    """stands: the run goes on counting on it; undone: its effects are undone and it ends; may_undone: so, unless a step
    starts an equal one and takes it over; cancelled: it ends, and its effects stay. Of a fork, where it starts an
    equal one: it reads its result (read), or starts it anew (anew)."""
    undone: list[str]
    """The steps of its effects that are taken back then."""
    cannot: list[str]
    """The steps of its effects that stay as they are."""


class CalledInside(ApiSchema):
    """Tools that a step called inside it, and that the run leaves behind: they are not undone, and may run again."""

    example: ClassVar = {"checkpoint": 9, "tools": ["book_berth"]}

    checkpoint: int
    """The number of the checkpoint that the step saved."""
    tools: list[str]
    """Their names: data, never markup."""


class ImpactAnswer(ApiSchema):
    """The impact of an order, if nothing fails. Send `digest` back with the order as `seen`."""

    example: ClassVar = {
        "digest": DIGEST, "asks": "review", "ends": False,
        "counts": {"will": 2, "may": 0, "skipped": 0, "stands": 4, "undone": 1, "may_undone": 0, "cannot": 0},
        "deadline": None,
    }  # fmt: skip

    digest: str
    """A digest in hex; equal impacts have the same one."""
    asks: str
    """The step that certainly asks a person; the rows end there."""
    ends: bool
    """Whether the run ends without asking anybody."""
    counts: dict[str, int]
    """The number of rows of each verdict."""
    rows: list[Consequence]
    """A row for each affected step, in order."""
    children: list[ChildFate] = []
    """What becomes of each run that this one started; of a fork, that its lineage did."""
    repeats: list[RepeatedEffect] = []
    """At a gate: the effects that were performed before and would be repeated. A decision must name the number of each
    in `confirm`, or is refused."""
    inside: list[CalledInside] = []
    """Of a rewind, an edit or a fork of a graph's run: the tools called inside the steps after it."""
    deadline: datetime | None = None
    """Of a rewind or an edit: the run's deadline, if it has passed; the order takes it off. Else null."""

    @classmethod
    def from_impact(cls, impact: Impact) -> Self:
        return cls(**impact.to_json())
