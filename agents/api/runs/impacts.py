"""The impact of an order, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from ninja import Schema
from pydantic import Field

from agents.api.protocol import one_of
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import ChildVerdict

DIGEST = "9c1d0e2f3a4b5c6d7e8f90a1b2c3d4e59c1d0e2f3a4b5c6d7e8f90a1b2c3d4e5"


class Consequence(Schema):
    """The consequence for one step, or for one effect that the run leaves behind."""

    step: str = Field(description="Its name.", examples=["pay"])
    kind: str = Field(description="step, effect or gate.", examples=["effect"])
    verdict: Annotated[str, one_of(ImpactVerdict)] = Field(
        description="will: it runs, or asks. may: it may run. skipped: it does not run, since people reject it or "
        "answer instead. stands: its recorded result is used. undone: it is undone. may_undone: it is undone unless a "
        "step reuses it. cannot: it is kept and cannot be undone.",
        examples=["undone"],
    )
    on: list[str] = Field(description="If it is not certain: the steps whose output it depends on.", examples=[[]])
    why: str = Field(description="The reason, as a code.", examples=["left"])
    asks: bool = Field(description="Whether a person is asked here.", examples=[False])
    effect: int = Field(description="The number of the effect that is kept, reused or undone; 0: none.", examples=[12])
    irreversible: bool = Field(description="Whether it cannot be undone once it has run.", examples=[False])
    again: bool = Field(description="Whether the run is sent back to it, so that it runs again.", examples=[False])
    kept: bool = Field(description="Whether it is before the point from which the run goes on.", examples=[False])
    took: float | None = Field(
        description="How many seconds it took when it last ran; null: it never ran.", examples=[0.072]
    )
    title: str = Field(description="What it did, for people: data, never markup.", examples=[""])


class RepeatedEffect(Schema):
    """An effect that was done, or may have been, and would be done once more."""

    effect: int = Field(description="Its number: what a decision sends in `confirm`.", examples=[12])
    step: str = Field(description="Its step.", examples=["reply"])
    action: str = Field(description="The card's action that would repeat it, by id; empty: none.", examples=[""])
    title: str = Field(description="The title of that action: data, never markup.", examples=["Send an e-mail"])
    run: int = Field(description="The run that performed it: this one, or another of its lineage.", examples=[7])
    checkpoint: int = Field(description="The checkpoint that holds its result; 0: none.", examples=[8])
    at: datetime | None = Field(description="When.", examples=["2026-11-22T16:18:02.104112Z"])
    done: bool = Field(description="Whether it was certainly performed; otherwise nobody knows.", examples=[True])
    certain: bool = Field(description="Whether it is certainly repeated; otherwise it may be.", examples=[True])
    irreversible: bool = Field(description="Whether it cannot be undone.", examples=[True])


class ChildFate(Schema):
    """The fate of a run that a step of this one started."""

    run: int = Field(description="Its number.", examples=[8])
    fate: Annotated[str, one_of(tuple(map(str, ChildVerdict)))] = Field(
        description="stands: the run goes on counting on it; undone: its effects are undone and it ends; "
        "may_undone: so, unless a step starts an equal one and takes it over; cancelled: it ends, and its "
        "effects stay. Of a fork, where it starts an equal one: it reads its result (read), or starts it anew (anew).",
        examples=["may_undone"],
    )
    undone: list[str] = Field(description="The steps of its effects that are taken back then.", examples=[["pay"]])
    cannot: list[str] = Field(description="The steps of its effects that stay as they are.", examples=[["tell"]])


class CalledInside(Schema):
    """Tools that a step called inside it, and that the run leaves behind: they are not undone, and may run again."""

    checkpoint: int = Field(description="The number of the checkpoint that the step saved.", examples=[9])
    tools: list[str] = Field(description="Their names: data, never markup.", examples=[["book_berth"]])


class ImpactAnswer(Schema):
    """The impact of an order, if nothing fails. Send `digest` back with the order as `seen`."""

    digest: str = Field(description="A digest in hex; equal impacts have the same one.", examples=[DIGEST])
    asks: str = Field(description="The step that certainly asks a person; the rows end there.", examples=["review"])
    ends: bool = Field(description="Whether the run ends without asking anybody.", examples=[False])
    counts: dict[str, int] = Field(
        description="The number of rows of each verdict.",
        examples=[{"will": 2, "may": 0, "skipped": 0, "stands": 4, "undone": 1, "may_undone": 0, "cannot": 0}],
    )
    rows: list[Consequence] = Field(description="A row for each affected step, in order.")
    children: list[ChildFate] = Field(
        [], description="What becomes of each run that this one started; of a fork, that its lineage did."
    )
    repeats: list[RepeatedEffect] = Field(
        [],
        description="At a gate: the effects that were performed before and would be repeated. A decision must name "
        "the number of each in `confirm`, or is refused.",
    )
    inside: list[CalledInside] = Field(
        [], description="Of a rewind, an edit or a fork of a graph's run: the tools called inside the steps after it."
    )
    deadline: datetime | None = Field(
        None,
        description="Of a rewind or an edit: the run's deadline, if it has passed; the order takes it off. Else null.",
        examples=[None],
    )

    @classmethod
    def of(cls, found: Impact) -> Self:
        return cls(**found.to_json())
