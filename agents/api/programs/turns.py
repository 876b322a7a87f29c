"""The next piece of work for an external program, as JSON, with the state to work on.

No state is kept for an Idempotency-Key: its secrets would lie in that table for a week, even if the run is removed
meanwhile. The same request again gets the state as long as the run has not moved on, and null after that.

A person who works on a run by a session or a token of their own is not its program: where the state holds secrets they
need the permission to reveal them, and an event records that before the secrets are shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from agents.api.protocol.answers import answer_json, encode_state
from agents.api.protocol.auth import token_of
from agents.api.protocol.idempotency_keys import do_once
from agents.api.protocol.schemas import ApiSchema, gate_page, one_of
from agents.api.runs.runs import KEY
from agents.definition import fields
from agents.models import Effect
from agents.remote import plans, reach, session_cache
from agents.remote.turns import RemoteTurn
from agents.session import translate_history
from agents.work_errors import WorkNotAllowed
from approvals.gates import reveal_secret
from approvals.views.access import reader_of
from checkpoints import store
from checkpoints.errors import Fenced
from checkpoints.models import Run

NONE = b"null}"  # how an answer without its state ends


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
        run, works = turn.run, bool(turn.kind)
        return cls.model_construct(
            run=run.pk, status=Run.Status.RUNNING if works else run.status, reason="" if works else run.reason,
            token=turn.token, seq=turn.seq, lease_until=turn.until if works else None,
            gate=turn.gate.pk if turn.gate else None, gate_url=gate_page(turn.gate.pk) if turn.gate else None,
            next=_next(turn) if works else None,
        )  # fmt: skip


class TurnWithState(TurnAnswer):
    """The same, with the state to work on."""

    example: ClassVar = {"state": {"invoice": 7, "wire": {"amount": "120.00"}}}

    state: dict[str, Any] | None
    """The state as canonical JSON, with its secrets, since it is for the program. Null: there is nothing to do."""


def turn_response(turn: RemoteTurn, *, state: bool = False) -> HttpResponse:
    """Answer 201 with the turn. `state`: also with the state, for a program that does not have it yet."""
    more: dict[str, Any] = {}
    if state:
        more["state"] = b"null" if turn.state is None else encode_state(turn.state)
    return answer_json(TurnAnswer.from_turn(turn), http_status=201, **more)


def _next(turn: RemoteTurn) -> Next:
    step, undo, row = (turn.step.name, turn.step.undo, turn.undoes) if turn.step else ("", "", turn.undoes)
    return Next.model_construct(
        kind=turn.kind, step=step, effect=Begun.from_effect(turn.effect) if turn.effect else None,
        undoes=None if row is None else Undone(id=row.pk, key=row.key, undo=undo),
    )  # fmt: skip


def do_exclusively(
    request: HttpRequest, run_id: int, key: str, do: Callable[[], HttpResponse], *, token: int = 0
) -> HttpResponse:
    """Do something to a run, once for a key, while no other request of this process does.

    The lock lasts until the commit: the next request would otherwise begin from the older state. What was not committed
    is dropped from the cache.
    """
    with session_cache.SESSIONS.alone(run_id):
        try:
            return do_once(request, key, do)
        except DatabaseError:
            session_cache.SESSIONS.take(run_id)
            raise
        except Fenced as error:
            raise session_cache.stale(run_id, token) from error


def with_state(
    request: HttpRequest, run_id: int, key: str, do: Callable[[], RemoteTurn], *, token: int = 0
) -> HttpResponse:
    """Do something to a run, as `do_exclusively`, and answer 201 with the turn that follows and the state.

    Raises WorkNotAllowed, and whatever `do` raises.
    """
    done: list[RemoteTurn] = []

    def answer_turn() -> HttpResponse:
        _may_have(request, run_id)
        done.append(do())
        return turn_response(replace(done[0], state=None), state=True)

    kept = do_exclusively(request, run_id, key, answer_turn, token=token)
    if done:
        return turn_response(done[0], state=True)
    kept.content = kept.content.removesuffix(NONE) + _again(request, json.loads(kept.content)) + b"}"
    return kept


def _again(request: HttpRequest, turn: dict[str, Any]) -> bytes:
    """Return the state of a turn that was handed out before, as JSON. Raises WorkNotAllowed."""
    run = Run.objects.select_related("plan").get(pk=turn["run"])
    then = turn["status"], turn["token"], turn["seq"]
    if (run.status, run.token, run.seq) != then or run.status != Run.Status.RUNNING:
        return b"null"
    _may_have(request, run.pk)
    undoes = turn["next"] and turn["next"]["undoes"]
    if undoes is None:
        return encode_state(store.load(run).state)
    undone = Effect.objects.select_related("run").get(pk=undoes["id"])
    return encode_state(translate_history.left_by(undone, run.plan))


def _may_have(request: HttpRequest, run_id: int) -> None:
    """Check that the sender may see the secrets in the state. Raises WorkNotAllowed."""
    token = token_of(request)
    if token is not None and token.agent:
        return
    run = reach.load_run(run_id)
    known = plans.registered(run.plan_id)
    if known is None or not fields.veil(known.agent.State):
        return
    try:
        reveal_secret.of_state(run, by=reader_of(request))
    except reveal_secret.RevealNotAllowed as refused:
        words = "The run's state holds secrets for its program. Claim the run with a token of its agent."
        raise WorkNotAllowed(words) from refused
