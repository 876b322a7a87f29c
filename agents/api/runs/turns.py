"""The next piece of work for an external program, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from django.http import HttpResponse
from ninja import Schema
from pydantic import Field

from agents.api.protocol import exact_json, gate_page, one_of
from agents.models import Effect
from agents.remote.turns import RemoteTurn
from checkpoints.models import Run

KEY = "3f0a1b2c4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7ff"


class Begun(Schema):
    """An effect whose intent is written: it is done once, under this key."""

    id: int = Field(description="The effect's number; report its result under it.", examples=[12])
    key: str = Field(description="The idempotency key, in hex: pass it to the provider.", examples=[KEY])
    grant: int | None = Field(description="The grant that it used; null if it needs none.", examples=[5])
    action: str = Field(description="The action of the gate that it performs.", examples=["wire"])
    attempts: int = Field(description="How often it was begun under this key, including this time.", examples=[1])

    @classmethod
    def of(cls, row: Effect) -> Self:
        """Build it from the row whose intent is written."""
        granted = row.grant.action if row.grant else ""
        return cls(id=row.pk, key=row.key, grant=row.grant_id, action=row.action or granted, attempts=row.attempts)


class Undone(Schema):
    """An effect that is to be undone."""

    id: int = Field(description="Its number.", examples=[12])
    key: str = Field(description="The key under which it was performed, in hex.", examples=[KEY])
    undo: str = Field(description="What undoes it, as the plan names it.", examples=["cancel_wire"])


class Next(Schema):
    """The next thing to do."""

    kind: Annotated[str, one_of(("step", "gate", "effect", "undo"))] = Field(
        description="step: run it and save what it wrote. gate: open it. effect: begin it, perform it, report it. "
        "undo: the same for undoing an effect.",
        examples=["effect"],
    )
    step: str = Field(description="The step of the plan.", examples=["wire"])
    effect: Begun | None = Field(description="The effect, once it has begun.", examples=[None])
    undoes: Undone | None = Field(description="The effect to undo.", examples=[None])


class TurnAnswer(Schema):
    """The status of the run, and the next piece of work."""

    run: int = Field(description="The run.", examples=[7])
    status: Annotated[str, one_of(Run.Status)] = Field(description="Its status.", examples=["running"])
    reason: str = Field(description="Why it ended or waits.", examples=[""])
    token: int = Field(description="The claim token: send it with every request.", examples=[3])
    seq: int = Field(description="The number of its newest checkpoint.", examples=[4])
    lease_until: datetime | None = Field(
        description="Until when nobody else may claim it; null: nobody has claimed it.",
        examples=["2026-03-02T09:16:05.104112Z"],
    )
    gate: int | None = Field(
        description="The gate for which it waits; one of them, if it waits for several.", examples=[None]
    )
    gate_url: str | None = Field(
        description="The page on which people decide that gate.", examples=["https://holdpoint.example.com/gates/42/"]
    )
    next: Next | None = Field(description="What to do next; null: nothing now.")

    @classmethod
    def of(cls, turn: RemoteTurn) -> TurnAnswer:
        """Build it from a turn; unchecked, since nothing in it is the sender's."""
        run = turn.run
        return cls.model_construct(
            run=run.pk,
            status=Run.Status.RUNNING if turn.kind else run.status,
            reason="" if turn.kind else run.reason,
            token=turn.token,
            seq=turn.seq,
            lease_until=turn.until if turn.kind else None,
            gate=turn.gate.pk if turn.gate else None,
            gate_url=gate_page(turn.gate.pk) if turn.gate else None,
            next=_next(turn),
        )


class TurnWithState(TurnAnswer):
    """The same, with the state to work on."""

    state: dict[str, Any] | None = Field(
        description="The state as canonical JSON, with its secrets, since it is for the program. Null: there is "
        "nothing to do.",
        examples=[{"invoice": 7, "wire": {"amount": "120.00"}}],
    )


def answer(turn: RemoteTurn, *, state: bool = False) -> HttpResponse:
    """Answer 201 with the turn. `state`: also with the state, for a program that does not have it yet."""
    more: dict[str, Any] = {}
    if state:
        more["state"] = b"null" if turn.state is None else exact_json.of_state(turn.state)
    return exact_json.answer(TurnAnswer.of(turn), http_status=201, **more)


def _next(turn: RemoteTurn) -> Next | None:
    if not turn.kind:
        return None
    effect = Begun.of(turn.effect) if turn.effect else None
    return Next.model_construct(
        kind=turn.kind, step=turn.step.name if turn.step else "", effect=effect, undoes=_undone(turn)
    )


def _undone(turn: RemoteTurn) -> Undone | None:
    row = turn.undoes
    return None if row is None else Undone(id=row.pk, key=row.key, undo=turn.step.undo if turn.step else "")
