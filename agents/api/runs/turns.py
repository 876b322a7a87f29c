"""The next piece of work for an external program, as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from django.http import HttpResponse

from agents.api.protocol import ApiSchema, exact_json, gate_page, one_of
from agents.models import Effect
from agents.remote.turns import RemoteTurn
from checkpoints.models import Run

KEY = "3f0a1b2c4d5e6f708192a3b4c5d6e75c0e1f2a3b4d5e6f708192a3b4c5d6e7ff"


class Begun(ApiSchema):
    """An effect whose intent is written: it is done once, under this key."""

    example: ClassVar = {"id": 12, "key": KEY, "grant": 5, "action": "wire", "attempts": 1}

    id: int
    """The effect's number; report its result under it."""
    key: str
    """The idempotency key, in hex: pass it to the provider."""
    grant: int | None
    """The grant that it used; null if it needs none."""
    action: str
    """The action of the gate that it performs."""
    attempts: int
    """How often it was begun under this key, including this time."""

    @classmethod
    def from_effect(cls, row: Effect) -> Self:
        """Build it from the row whose intent is written."""
        granted = row.grant.action if row.grant else ""
        return cls(id=row.pk, key=row.key, grant=row.grant_id, action=row.action or granted, attempts=row.attempts)


class Undone(ApiSchema):
    """An effect that is to be undone."""

    example: ClassVar = {"id": 12, "key": KEY, "undo": "cancel_wire"}

    id: int
    """Its number."""
    key: str
    """The key under which it was performed, in hex."""
    undo: str
    """What undoes it, as the plan names it."""


class Next(ApiSchema):
    """The next thing to do."""

    example: ClassVar = {"kind": "effect", "step": "wire", "effect": None, "undoes": None}

    kind: Annotated[str, one_of(("step", "gate", "effect", "undo"))]
    """step: run it and save what it wrote. gate: open it. effect: begin it, perform it, report it. undo: the same for
    undoing an effect."""
    step: str
    """The step of the plan."""
    effect: Begun | None
    """The effect, once it has begun."""
    undoes: Undone | None
    """The effect to undo."""


class TurnAnswer(ApiSchema):
    """The status of the run, and the next piece of work."""

    example: ClassVar = {
        "run": 7, "status": "running", "reason": "", "token": 3, "seq": 4,
        "lease_until": "2026-03-02T09:16:05.104112Z", "gate": None,
        "gate_url": "https://holdpoint.example.com/gates/42/",
    }  # fmt: skip

    run: int
    """The run."""
    status: Annotated[str, one_of(Run.Status)]
    """Its status."""
    reason: str
    """Why it ended or waits."""
    token: int
    """The claim token: send it with every request."""
    seq: int
    """The number of its newest checkpoint."""
    lease_until: datetime | None
    """Until when nobody else may claim it; null: nobody has claimed it."""
    gate: int | None
    """The gate for which it waits; one of them, if it waits for several."""
    gate_url: str | None
    """The page on which people decide that gate."""
    next: Next | None
    """What to do next; null: nothing now."""

    @classmethod
    def from_turn(cls, turn: RemoteTurn) -> TurnAnswer:
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

    example: ClassVar = {"state": {"invoice": 7, "wire": {"amount": "120.00"}}}

    state: dict[str, Any] | None
    """The state as canonical JSON, with its secrets, since it is for the program. Null: there is nothing to do."""


def turn_response(turn: RemoteTurn, *, state: bool = False) -> HttpResponse:
    """Answer 201 with the turn. `state`: also with the state, for a program that does not have it yet."""
    more: dict[str, Any] = {}
    if state:
        more["state"] = b"null" if turn.state is None else exact_json.of_state(turn.state)
    return exact_json.answer_json(TurnAnswer.from_turn(turn), http_status=201, **more)


def _next(turn: RemoteTurn) -> Next | None:
    if not turn.kind:
        return None
    effect = Begun.from_effect(turn.effect) if turn.effect else None
    return Next.model_construct(
        kind=turn.kind, step=turn.step.name if turn.step else "", effect=effect, undoes=_undone(turn)
    )


def _undone(turn: RemoteTurn) -> Undone | None:
    row = turn.undoes
    return None if row is None else Undone(id=row.pk, key=row.key, undo=turn.step.undo if turn.step else "")
