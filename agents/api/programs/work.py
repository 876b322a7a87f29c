"""Working on runs from outside: claim one, save what steps wrote, open gates, do effects and report them, end it.

Every call carries the claim token. A body that does not fit is refused whole, with the place of the fault, and changes
nothing; a call that is sent again with its Idempotency-Key is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar, Literal

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from ninja import P, PathEx, Router
from pydantic import Field

from agents.api.gates.cards import AskedCard
from agents.api.programs.turns import TurnAnswer, TurnWithState, do_exclusively, turn_response, with_state
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import actor_of, require_scope, token_of
from agents.api.protocol.idempotency_keys import Key
from agents.api.protocol.schemas import ApiSchema, Order, RunId
from agents.api.runs.checkpoints import router as checkpoints
from agents.api.runs.runs import effects as effects
from agents.errors import FieldError
from agents.models import Client, Effect, TokenScope
from agents.remote import asking, reach, results, session_cache, turns
from agents.remote.results import StepWrites
from agents.remote.turns import RemoteTurn
from agents.session.run_session import RunSession
from agents.work_errors import NoGrant, OutOfTurn, ReportedBefore, StaleToken, WorkInvalid
from approvals.views.access import reader_of
from checkpoints.models import Run

TOKEN = Field(description="The claim token, which the claim answered.", ge=1, le=2**62, examples=[3])
STEP = Field(description="The step of the plan.", min_length=1, max_length=100, examples=["draft"])
TOOK = Field(0.0, description="How long it took, in seconds.", ge=0, le=10**7, examples=[1.25])
NOTES_WORDS = "What the step did and why, in the agent's words; shown with the checkpoint."
NOTES: Any = Field([], description=NOTES_WORDS, max_length=50, examples=[["A look-up."]])
RETRY_WORDS = "Whether it may be retried automatically: for an effect, that nothing was sent."
RETRY = Field(False, description=RETRY_WORDS, examples=[False])
WORK = require_scope(TokenScope.WORK)


class ClaimBody(Order):
    """Claim a run that nobody works on."""

    example: ClassVar = {"worker": "box:81", "lease": 60}

    worker: str = Field("", max_length=120)
    """Who works on the run, for people: host and process."""
    lease: float = Field(60.0, ge=1, le=3600)
    """Seconds during which nobody else may claim it; every request of yours starts them again."""


class ClaimedRequest(Order):
    """A request under a claim."""

    token: int = TOKEN


class Heartbeat(ClaimedRequest):
    """Report that you are still working."""


class HeartbeatAnswer(ApiSchema):
    """The state of the claim."""

    example: ClassVar = {"halt": False, "lease": 60}

    halt: bool
    """Whether a person asks you to stop, because they want to move the run: finish the current step, or release the
    run."""
    lease: float
    """Seconds from now for which nobody else may claim the run."""


class SetField(Order):
    """Give a field a new value."""

    example: ClassVar = {"op": "set", "field": "draft", "value": "Dear Marit"}

    op: Literal["set"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    value: Any
    """Its new value."""


class AppendItems(Order):
    """Add items to the end of a list."""

    example: ClassVar = {"op": "append", "field": "messages", "items": [{"role": "user", "text": "Pay it."}]}

    op: Literal["append"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    items: list[Any]
    """The added values."""


class SpliceItems(Order):
    """Replace items of a list by others."""

    example: ClassVar = {"op": "splice", "field": "messages", "start": 0, "delete": 2, "items": []}

    op: Literal["splice"]
    """What to do."""
    field: str = Field(max_length=100)
    """The field."""
    start: int = Field(ge=0, le=2**40)
    """The index at which the change begins."""
    delete: int = Field(ge=0, le=2**40)
    """How many items are removed."""
    items: list[Any] = []
    """What comes in their place."""


Op = Annotated[SetField | AppendItems | SpliceItems, Field(discriminator="op")]


class Wrote(Order):
    """The writes of a step: `ops` on the fields that changed, or the whole `state`."""

    example: ClassVar = {
        "ops": [{"op": "append", "field": "messages", "items": [{"role": "user", "text": "Pay it."}]}], "state": None,
        "next_step": None,
    }  # fmt: skip

    step: str = STEP
    ops: list[Op] | None = Field(None, max_length=500)
    """One for each field that changed. An append costs what it adds, however long the list is."""
    state: dict[str, Any] | None = None
    """Instead of `ops`: the whole new state, with every field."""
    next_step: str | None = Field(None, max_length=100)
    """The step to go on with, if not the next step of the plan; empty: the run is done. The plan must allow the step to
    go there."""
    took: float = TOOK
    notes: list[str] = NOTES


class Save(Wrote):
    """The writes of a step, as the run's next checkpoint."""

    token: int = TOKEN


class SaveAll(ClaimedRequest):
    """The writes of several steps, one after the other: a checkpoint each."""

    checkpoints: list[Wrote] = Field(min_length=1, max_length=100)
    """The oldest first. All of them are saved, or none."""


class Ask(AskedCard):
    """Open a gate of the plan and wait there; the run is released meanwhile."""

    example: ClassVar = {"step": "review", "deferred": False}

    token: int = TOKEN
    step: str = Field(min_length=1, max_length=100)
    """The gate's step of the plan."""
    took: float = TOOK
    notes: list[str] = NOTES
    deferred: bool = False
    """Whether you disconnect and come back for the outcome; then you are not treated as lost."""


class Begin(ClaimedRequest):
    """Begin an effect or an undo: its intent is written, and the grant used."""

    example: ClassVar = {"step": "wire", "undoes": None}

    step: str = Field("", max_length=100)
    """The effect's step of the plan."""
    undoes: int | None = Field(None, ge=1, le=2**62)
    """Instead of `step`: the number of the effect to undo."""


class Report(ClaimedRequest):
    """The result of an effect that you began."""

    example: ClassVar = {"status": "done", "writes": {"wire_result": {"id": "tx_1"}}, "error": "", "next_step": None}

    status: Literal["done", "failed", "unknown"]
    """done: it happened. failed: it certainly did not. unknown: nobody knows, as after a timeout."""
    writes: dict[str, Any] = {}
    """If done: the fields that it writes."""
    error: str = Field("", max_length=2000)
    """If not done: what went wrong."""
    retry: bool = RETRY
    next_step: str | None = Field(None, max_length=100)
    """As for a checkpoint."""
    took: float = TOOK
    notes: list[str] = NOTES


class FailureBody(ClaimedRequest):
    """A step failed."""

    example: ClassVar = {"error": "503 from the bank"}

    step: str = STEP
    error: str = Field(min_length=1, max_length=2000)
    """What went wrong, in one line."""
    retry: bool = RETRY


class RunEnding(ClaimedRequest):
    """End the run: it is done, or it failed for good."""

    example: ClassVar = {"status": "completed", "reason": ""}

    status: Literal["completed", "failed"]
    """How it ends."""
    reason: str = Field("", max_length=300)
    """The reason, in one line."""


router = Router(tags=["work"], auth=WORK)
EffectId = PathEx[int, P(title="Effect", description="The effect's number.", example=12)]


@router.post("/{int:run_id}/claims", response={201: TurnWithState}, summary="Claim a run")
def claim_run(request: HttpRequest, run_id: RunId, order: ClaimBody, key: Key) -> HttpResponse:
    """Claim a run that nobody works on, and read what to do next. The decision at its gate is applied."""
    reached = reach.to_work(run_id, by=reader_of(request))
    by, token = actor_of(request), token_of(request)

    def do() -> RemoteTurn:
        return turns.claim(reached, worker=order.worker or by.name, lease=order.lease, by=by, token=token)

    return with_state(request, run_id, key, do)


@router.post("/{int:run_id}/heartbeats", response=HeartbeatAnswer, summary="Send a heartbeat")
def beat_run(request: HttpRequest, run_id: RunId, order: Heartbeat) -> HttpResponse:
    """Report that you are still working, where a step takes longer than the lease."""
    reached = reach.to_work(run_id, by=reader_of(request))
    lease = session_cache.renew(reached.id, order.token)
    return answer_json(HeartbeatAnswer(halt=reached.halt, lease=lease))


@checkpoints.post("/{int:run_id}/checkpoints", auth=WORK, response={201: TurnAnswer}, summary="Save a checkpoint")
def save_checkpoint(request: HttpRequest, run_id: RunId, order: Save, key: Key) -> HttpResponse:
    """Save what a step wrote as the run's next checkpoint, and read what comes next."""
    return worked(request, run_id, order.token, key, lambda session: _saved(session, order))


@checkpoints.post(
    "/{int:run_id}/checkpoints/batches", auth=WORK, response={201: TurnAnswer}, summary="Save several checkpoints"
)
def save_checkpoints(request: HttpRequest, run_id: RunId, order: SaveAll, key: Key) -> HttpResponse:
    """Save what several steps wrote, a checkpoint each, in one transaction: for steps that are faster than calls.

    Only steps may come before the last of them: where a gate, an effect or a person's order comes between, nothing is
    saved.
    """

    def do(session: RunSession) -> RemoteTurn:
        lines: list[RemoteTurn] = []
        for wrote in order.checkpoints:
            if lines and lines[-1].kind != "step":
                raise OutOfTurn(f"Nothing was saved: after {len(lines)} of these {_comes(lines[-1])}. Send them alone.")
            with _within(f"/checkpoints/{len(lines)}"):
                lines.append(_saved(session, wrote))
        return lines[-1]

    return worked(request, run_id, order.token, key, do)


@router.post("/{int:run_id}/gates", response={201: TurnAnswer}, summary="Open a gate of a run")
def open_gate(request: HttpRequest, run_id: RunId, order: Ask, key: Key) -> HttpResponse:
    """Open a gate, and release the run until people have decided."""

    def do(session: RunSession) -> RemoteTurn:
        card, token = order.card(), token_of(request)
        turn = asking.ask(session, order.step, card, token=token, took=order.took, notes=order.notes)
        Client.objects.filter(run_id=run_id).update(deferred=order.deferred)
        return turn

    return worked(request, run_id, order.token, key, do)


@effects.post("/{int:run_id}/effects", auth=WORK, response={201: TurnWithState}, summary="Begin an effect")
def begin_effect(request: HttpRequest, run_id: RunId, order: Begin, key: Key) -> HttpResponse:
    """Record that an effect is about to be done, before it is done. This uses its grant, once."""
    reached = reach.to_work(run_id, by=reader_of(request))

    def do() -> RemoteTurn:
        if bool(order.step) == (order.undoes is not None):
            raise WorkInvalid.at("", "send either `step` or `undoes`")
        with session_cache.at_work(reached, order.token) as session:
            if order.undoes is None:
                return results.begin(session, order.step)
            return results.begin_undo(session, order.undoes)

    return with_state(request, run_id, key, do, token=order.token)


@router.post(
    "/{int:run_id}/effects/{int:effect_id}/results", response={201: TurnAnswer}, summary="Report an effect's result"
)
def report_effect(request: HttpRequest, run_id: RunId, effect_id: EffectId, order: Report, key: Key) -> HttpResponse:
    """Report the result of an effect. After the claim was lost this is evidence: it answers the question to people."""
    try:
        return _report(request, run_id, effect_id, order, key)
    except (StaleToken, ReportedBefore):
        # The claim may have been lost during the request: read again, the report is evidence then.
        return _report(request, run_id, effect_id, order, key)


def _report(request: HttpRequest, run_id: int, effect_id: int, order: Report, key: str) -> HttpResponse:
    run = reach.to_work(run_id, by=reader_of(request))
    row = Effect.objects.select_related("run", "undoes__run").filter(pk=effect_id, run=run.id).first()
    if row is None:
        raise Http404("No such effect")
    if not order.error and order.status != results.DONE:
        raise WorkInvalid.at("/error", "say what went wrong")
    if row.undoes is not None and (order.writes or order.next_step is not None):
        raise WorkInvalid.at("/writes", "an undo writes nothing")
    written = StepWrites(order.writes, order.next_step, order.took, order.notes)

    def record_report() -> HttpResponse:
        if order.token < row.token:
            raise StaleToken(
                f"Whoever has token {row.token} has begun this effect since, and reports it. Nothing was recorded: "
                "do not do it again, and claim the run to read where it stands."
            )
        if row.token != order.token:
            raise NoGrant(
                "This effect was not begun with this token. Begin it first, and report it with the same token."
            )
        if run.token != order.token or run.status != Run.Status.RUNNING:
            with transaction.atomic():
                results.late(row, order.status, written, order.error)
                reach.note_owner(row.run, run)
            return turn_response(turns.without_work(run.id, order.token))
        with session_cache.at_work(run, order.token) as session:
            row.refresh_from_db()  # somebody may have reported it while this waited for the lock
            turn = results.reported(session, row, order.status, written, order.error, retry=order.retry)
        return turn_response(turn)

    return do_exclusively(request, run_id, key, record_report, token=order.token)


def _saved(session: RunSession, order: Wrote) -> RemoteTurn:
    if (order.ops is None) == (order.state is None):
        raise WorkInvalid.at("", "send either `ops` or `state`")
    if order.state is not None:
        turns.check_next(session, order.step, "step")
        writes = results.whole(session, order.state)
    else:
        writes = results.writes_of([field.model_dump() for field in order.ops or ()])
    return results.step(session, order.step, StepWrites(writes, order.next_step, order.took, order.notes))


def _comes(turn: RemoteTurn) -> str:
    return f"the {turn.kind} {turn.step.name} comes" if turn.step else "the run is released, as somebody asked"


@contextmanager
def _within(place: str) -> Iterator[None]:
    """Prefix the pointers of faults with their place in the whole body."""
    try:
        yield
    except WorkInvalid as error:
        lines = [FieldError(pointer=place + item["pointer"], message=item["message"]) for item in error.errors]
        raise WorkInvalid(lines) from error


@router.post("/{int:run_id}/failures", response={201: TurnAnswer}, summary="Report a failed step")
def report_failure(request: HttpRequest, run_id: RunId, order: FailureBody, key: Key) -> HttpResponse:
    """Report that a step failed: it runs again later if its plan says so, else people are asked how to go on."""

    def do(session: RunSession) -> RemoteTurn:
        return results.failed(session, order.step, order.error, retry=order.retry)

    return worked(request, run_id, order.token, key, do)


@router.post("/{int:run_id}/releases", response={201: TurnAnswer}, summary="Release a run")
def release_run(request: HttpRequest, run_id: RunId, order: ClaimedRequest, key: Key) -> HttpResponse:
    """Release the run as it is, so that the next program need not wait for the lease to end."""
    return worked(request, run_id, order.token, key, results.released)


@router.post("/{int:run_id}/endings", response={201: TurnAnswer}, summary="End a run")
def end_run(request: HttpRequest, run_id: RunId, order: RunEnding, key: Key) -> HttpResponse:
    """End the run. Effects that it left behind are settled first; until then it is not over."""
    return worked(request, run_id, order.token, key, lambda session: results.ended(session, order.status, order.reason))


def worked(
    request: HttpRequest, run_id: int, token: int, key: str, do: Callable[[RunSession], RemoteTurn]
) -> HttpResponse:
    """Do something under a claim, once for a key, and answer with the turn that follows."""
    run = reach.to_work(run_id, by=reader_of(request))

    def answer_turn() -> HttpResponse:
        with session_cache.at_work(run, token) as session:
            turn = do(session)
        return turn_response(turn)

    return do_exclusively(request, run_id, key, answer_turn, token=token)
