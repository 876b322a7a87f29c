"""Orders to a run: rewind, edit, fork, settle, cancel; and previews of an order.

Each order may name the digest of the impact that its sender has seen. If the run would do something else by now,
nothing is done and the answer is 409 with the new impact. It may also name the newest checkpoint that the sender knew,
so that a rewind or an edit that is sent twice is done once; or bring an idempotency key, as every POST may.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, ClassVar

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import ConfigDict, Field

from agents.access import checkpoint_or_404, reader_of, run_or_404
from agents.api.protocol import (
    Described,
    Key,
    RunId,
    answer_json,
    confirmation_of,
    do_once,
    keep_answer,
    one_of,
    own_key,
    require_scope,
)
from agents.errors import RewindRefused
from agents.models import TokenScope
from agents.moves import cancel as cancelling
from agents.moves import fork as forks
from agents.moves import impact as impacts
from agents.moves import rewind as rewinds
from approvals.impact import Impact
from checkpoints.models import Run

from .impacts import ImpactAnswer
from .runs import RunSummary, summed_up

router = Router(tags=["orders"], auth=require_scope(TokenScope.ORDER))
OP: dict[str, Any] = {"op": "replace", "path": "/order/currency", "value": "USD"}
SEEN = Field(
    "",
    description="The `digest` of the impact that you have seen. If the order would now do something else, nothing is "
    "done and the answer is 409. Empty: carry it out whatever it does.",
    max_length=64,
    examples=[""],
)
NEWEST = Field(
    0,
    description="The run's `seq` when you looked: if it has saved a checkpoint since, nothing is done and the answer "
    "is 409. So an order that is sent twice is carried out once. 0: do not check.",
    ge=0,
    examples=[0],
)
OPS = 10_000  # of one patch
PATCH = Field(description="The edit of the state: a JSON Patch (RFC 6902).", max_length=OPS, examples=[[OP]])
FEEDBACK = Field(
    "",
    description="The reason; the agent reads it if its state has a list for feedback. Kept in the audit log.",
    max_length=2000,
    examples=["The shop has changed the order."],
)


class Order(Described):
    """A body that may have no unknown members: a misspelt guard would guard nothing.

    Not ninja's Schema, which reads each member through an object that can resolve a model's: a body is plain JSON.
    """

    model_config = ConfigDict(extra="forbid")


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
    values = {"confirmed": confirmation_of(request), **dict(order)}
    return _moved(request, key, rewinds.rewind, run_to_order(request, run_id, order.to), **values)


@router.post("/{int:run_id}/edits", response=RunSummary, summary="Edit a run's state")
def edit_run(request: HttpRequest, run_id: RunId, order: Edit, key: Key) -> HttpResponse:
    """Save an edited state as a new checkpoint and go on from it."""
    values = {"confirmed": confirmation_of(request), **dict(order)}
    return _moved(request, key, rewinds.edit, run_to_order(request, run_id, order.at), **values)


@router.post("/{int:run_id}/forks", response={201: RunSummary}, summary="Fork a run")
def fork_run(request: HttpRequest, run_id: RunId, order: Fork, key: Key) -> HttpResponse:
    """Start another run from a checkpoint of this one, which stays as it is."""
    run = run_to_order(request, run_id, order.at)

    def make() -> HttpResponse:
        confirmed = confirmation_of(request)
        made = forks.fork(run, by=reader_of(request), key=own_key(request, key), confirmed=confirmed, **dict(order))
        return answer_run(made, http_status=201, location=f"/api/runs/{made.pk}")

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
        return answer_run(run)

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


def _moved(request: HttpRequest, key: str, move: Callable[..., Run], run: Run, **said: Any) -> HttpResponse:
    """Move the run, once for the key. `said`: the members of the order, which are the move's arguments."""
    return keep_answer(
        request, key, lambda: answer_run(move(run, by=reader_of(request), key=own_key(request, key), **said))
    )


def answer_run(run: Run, **how: Any) -> HttpResponse:
    """Return the run as it is after the order."""
    return answer_json(summed_up(run), **how)
