"""The page that forks a run: another run from one of its checkpoints, with another state, configuration or version."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agents.definition import environment, registry
from agents.errors import InputRefused, RewindRefused
from agents.moves import fork, impact
from agents.pages.edits import Offer, TypedState, order_context, show_refusal, typed_of
from agents.pages.run import offered_moves
from agents.pages.run.offered_moves import TypedOrder, order_of
from approvals.forms.texts import as_json
from approvals.policy import step_up
from approvals.views.access import private_get, private_post
from checkpoints.errors import ValueRefused
from checkpoints.models import Checkpoint, Run
from checkpoints.values.canonical_json import parse_json


@private_get
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """Show the state that a fork from the checkpoint begins with, and its impact."""
    run, reader = offered_moves.run_to_order(request, run_id)
    if asks := offered_moves.ask_confirmation(request, run, reader):
        return asks
    return render(request, "runs/order/fork.html", fork_context(run, TypedOrder("fork", seq, title=run.title)))


@private_post
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Start the fork. The same form sent twice is one fork. 422 and 409 as for an edit."""
    run, reader = offered_moves.run_to_order(request, run_id)
    order = order_of(request, "fork")
    typed, (config, wrong) = typed_of(run, order), config_of(run, order)
    if typed.faults or wrong:
        return show_refusal(request, fork_context(run, order))
    try:
        made = fork.fork(
            run, at=order.at, by=reader, patch=typed.patch, config=config, version=order.version, title=order.title,
            seen=order.seen, key=order.once, confirmed=step_up.of_session(request),
        )  # fmt: skip
    except RewindRefused as refusal:
        return show_refusal(request, fork_context(run, order), refusal)
    return redirect("run", made.pk)


def fork_context(run: Run, order: TypedOrder) -> dict[str, Any]:
    """Return the context of runs/order/fork.html and runs/order/preview.html."""

    def offer(checkpoint: Checkpoint, typed: TypedState) -> Offer:
        config, wrong = config_of(run, order)
        recorded = environment.recorded(run).get("config") if order.config is None else None  # None: the agent has none
        deployed = {version for name, version in registry.agents() if name == checkpoint.plan.agent}
        shown, refused = None, None
        if not typed.faults and not wrong:
            heading = f"If you fork from checkpoint {checkpoint.seq}"
            look = partial(impact.of_fork, run, order.at, typed.patch, config, order.version)
            shown, refused = offered_moves.attempt(look, "Fork", heading)
        culprits = refused.errors if refused else []
        if refused and isinstance(refused.__cause__, InputRefused):  # the configuration is at fault, not a field
            wrong, culprits = [culprit["message"] for culprit in culprits], []
        return {
            "shown": shown,
            "refused": offered_moves.sentence(refused),
            "versions": sorted({checkpoint.plan.version} | deployed),  # on this server, and the checkpoint's own
            "version": order.version or checkpoint.plan.version,
            "config": as_json(recorded) if order.config is None and recorded is not None else order.config,
            "config_faults": wrong,
        }, culprits

    return order_context(run, order, offer)


def config_of(run: Run, order: TypedOrder) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the configuration in the form, None for the run's own, and its faults."""
    if order.config is None or not order.config.strip():
        return None, []
    try:
        found = parse_json(order.config)
    except ValueRefused as error:
        return None, [error.reason]
    if not isinstance(found, dict):
        return None, ["must be a JSON object"]
    return (None if found == environment.recorded(run).get("config") else found), []
