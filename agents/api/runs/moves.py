"""Orders to a run: rewind, edit, fork, settle, cancel; and previews of an order.

Each order may name the digest of the impact that its sender has seen. If the run would do something else by now,
nothing is done and the answer is 409 with the new impact. It may also name the newest checkpoint that the sender knew,
so that a rewind or an edit that is sent twice is done once; or bring an idempotency key, as every POST may.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Self

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.access import checkpoint_or_404, run_or_404
from agents.api.protocol.answers import answer_json
from agents.api.protocol.auth import confirmation_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once, keep_answer, own_key
from agents.api.protocol.schemas import ApiSchema, Order, RunId, one_of
from agents.api.runs.runs import RunSummary, summed_up
from agents.errors import RewindRefused
from agents.models import TokenScope
from agents.moves import cancel as cancelling
from agents.moves import fork as forks
from agents.moves import impact as impacts
from agents.moves import rewind as rewinds
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import ChildVerdict
from approvals.views.access import reader_of
from checkpoints.models import Run

DIGEST = "9c1d0e2f3a4b5c6d7e8f90a1b2c3d4e59c1d0e2f3a4b5c6d7e8f90a1b2c3d4e5"
OP: dict[str, Any] = {"op": "replace", "path": "/order/currency", "value": "USD"}
SEEN_WORDS = (
    "The `digest` of the impact that you have seen. If the order would now do something else, nothing is done and the "
    "answer is 409. Empty: carry it out whatever it does."
)
SEEN = Field("", description=SEEN_WORDS, max_length=64, examples=[""])
NEWEST_WORDS = (
    "The run's `seq` when you looked: if it has saved a checkpoint since, nothing is done and the answer is 409. So an "
    "order that is sent twice is carried out once. 0: do not check."
)
NEWEST = Field(0, description=NEWEST_WORDS, ge=0, examples=[0])
OPS = 10_000  # of one patch
PATCH = Field(description="The edit of the state: a JSON Patch (RFC 6902).", max_length=OPS, examples=[[OP]])
WHY = "The reason; the agent reads it if its state has a list for feedback. Kept in the audit log."
FEEDBACK = Field("", description=WHY, max_length=2000, examples=["The shop has changed the order."])


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


router = Router(tags=["orders"], auth=require_scope(TokenScope.ORDER))


class Rewind(Order):
    """Go back to a checkpoint, and run the step after it again."""

    example: ClassVar = {"to": 2, "confirm": False}

    to: int = Field(ge=1)
    """The checkpoint's number."""
    feedback: str = FEEDBACK
    confirm: bool = False
    """Whether an effect that cannot be undone may be repeated, if the run goes back to one."""
    seen: str = SEEN
    newest: int = NEWEST


class Edit(Order):
    """Change the state of a checkpoint, and go on from there: only what reads the change runs again."""

    example: ClassVar = {"at": 3}

    at: int = Field(ge=1)
    """The checkpoint's number."""
    patch: list[dict[str, Any]] = PATCH
    feedback: str = FEEDBACK
    seen: str = SEEN
    newest: int = NEWEST


class Fork(Order):
    """Start another run from a checkpoint."""

    example: ClassVar = {
        "at": 3, "patch": [OP], "config": {"limit": "50.00"}, "version": "2", "title": "A voucher instead of money",
    }  # fmt: skip

    at: int = Field(ge=1)
    """The checkpoint's number."""
    patch: list[dict[str, Any]] = Field([], max_length=OPS)
    """An edit of the state that the fork begins with."""
    config: dict[str, Any] | None = None
    """Configuration that differs from the run's; null: unchanged."""
    version: str = ""
    """The agent's version; empty: the checkpoint's."""
    title: str = Field("", max_length=200)
    """Its title; empty: the run's."""
    seen: str = SEEN


class OrderPreview(Order):
    """An order to preview: the members of that order, without `seen` and `confirm`."""

    example: ClassVar = {"kind": "rewind", "at": 2, "patch": [OP], "config": None, "version": ""}

    kind: Annotated[str, one_of(("rewind", "edit", "fork"))] = Field(pattern="^(rewind|edit|fork)$")
    """The order to preview."""
    at: int = Field(ge=1)
    """The checkpoint's number."""
    patch: list[dict[str, Any]] = Field([], max_length=OPS)
    """The edit, for an edit or a fork."""
    feedback: str = FEEDBACK
    config: dict[str, Any] | None = None
    """For a fork."""
    version: str = ""
    """For a fork."""


class Cancellation(Order):
    """End the run."""

    example: ClassVar = {"reason": "The customer has withdrawn the order."}

    reason: str = Field("", max_length=300)
    """The reason, for people; the run shows it."""


@router.post("/{int:run_id}/impacts", response=ImpactAnswer, summary="Preview an order")
def preview_order(request: HttpRequest, run_id: RunId, order: OrderPreview) -> HttpResponse:
    """Return what a rewind, an edit or a fork would do. Nothing is written."""
    run = run_to_order(request, run_id, order.at)
    look: dict[str, partial[Impact]] = {
        "rewind": partial(impacts.of_rewind, run, order.at, order.feedback),
        "edit": partial(impacts.of_edit, run, order.at, order.patch, order.feedback),
        "fork": partial(impacts.of_fork, run, order.at, order.patch, order.config, order.version),
    }
    return answer_json(ImpactAnswer.from_impact(look[order.kind]()))


@router.post("/{int:run_id}/rewinds", response=RunSummary, summary="Rewind a run")
def rewind_run(request: HttpRequest, run_id: RunId, order: Rewind, key: Key) -> HttpResponse:
    """Move the run's head to an earlier checkpoint, as a new one; whoever works on the run stops or is fenced."""
    return _moved(request, key, rewinds.rewind, run_to_order(request, run_id, order.to), order)


@router.post("/{int:run_id}/edits", response=RunSummary, summary="Edit a run's state")
def edit_run(request: HttpRequest, run_id: RunId, order: Edit, key: Key) -> HttpResponse:
    """Save an edited state as a new checkpoint and go on from it."""
    return _moved(request, key, rewinds.edit, run_to_order(request, run_id, order.at), order)


@router.post("/{int:run_id}/forks", response={201: RunSummary}, summary="Fork a run")
def fork_run(request: HttpRequest, run_id: RunId, order: Fork, key: Key) -> HttpResponse:
    """Start another run from a checkpoint of this one, which stays as it is."""
    run = run_to_order(request, run_id, order.at)

    def make() -> HttpResponse:
        confirmed = confirmation_of(request)
        made = forks.fork(run, by=reader_of(request), key=own_key(request, key), confirmed=confirmed, **dict(order))
        return answer_json(summed_up(made), http_status=201, location=f"/api/runs/{made.pk}")

    return keep_answer(request, key, make)


@router.post("/{int:run_id}/settlements", response=RunSummary, summary="Undo what a run left behind")
def settle_run(request: HttpRequest, run_id: RunId, key: Key) -> HttpResponse:
    """Undo at once what the run left behind, even if a step ahead could still reuse it."""
    return _moved(request, key, rewinds.settle_now, run_to_order(request, run_id))


@router.post("/{int:run_id}/cancellations", response=RunSummary, summary="Cancel a run")
def cancel_run(request: HttpRequest, run_id: RunId, order: Cancellation, key: Key) -> HttpResponse:
    """Cancel the run, and withdraw its gates. A run that left effects behind settles them first, then ends."""
    run = run_to_order(request, run_id)

    def end() -> HttpResponse:
        ended = cancelling.cancel(run, by=reader_of(request), reason=order.reason.strip())
        run.refresh_from_db()
        if not ended:
            raise RewindRefused(f"The run has already ended as {run.status}; there is nothing to cancel.")
        return answer_json(summed_up(run))

    return do_once(request, key, end)


def run_to_order(request: HttpRequest, run_id: int, seq: int | None = None) -> Run:
    """Return the run, if the reader may order something of it.

    Raises Http404, also without `seq`, and RewindNotAllowed.
    """
    run = run_or_404(request, run_id)
    rewinds.check_may(run, reader_of(request))
    if seq is not None:
        checkpoint_or_404(run, seq)
    return run


def _moved(
    request: HttpRequest, key: str, move: Callable[..., Run], run: Run, order: Order | None = None
) -> HttpResponse:
    """Move the run, once for the key. The members of the order are the move's arguments."""
    values = {"confirmed": confirmation_of(request), **dict(order)} if order else {}

    def do() -> HttpResponse:
        return answer_json(summed_up(move(run, by=reader_of(request), key=own_key(request, key), **values)))

    return keep_answer(request, key, do)
