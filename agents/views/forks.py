"""Forking a run: another run from one of its checkpoints, with another state, configuration or version."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agents import environment, forks, impacts, registry
from agents.errors import InputRefused, RewindRefused
from agents.presentation import editors
from approvals.forms.texts import as_json
from checkpoints import store
from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.models import Plan, Run
from checkpoints.values.canonical_json import parse

from . import orders
from .access import private
from .edits import state_context, typed_of
from .inspector import checkpoint_or_404
from .posted import Order, order_of

VERB = "Fork"


@require_safe
@private
def page(request: HttpRequest, run_id: int, seq: int) -> HttpResponse:
    """What a fork from the checkpoint begins with, and what it would do."""
    run, _ = orders.run_to_order(request, run_id)
    return render(request, "runs/fork.html", fork_context(run, Order("fork", seq, title=run.title)))


@require_POST
@private
def create(request: HttpRequest, run_id: int) -> HttpResponse:
    """Start the fork. The same form sent twice is one fork. 422 and 409 as for an edit."""
    run, reader = orders.run_to_order(request, run_id)
    order = order_of(request, "fork")
    typed, (config, wrong) = typed_of(run, order), config_of(run, order)
    if typed.faults or wrong:
        return refused(request, run, order)
    key = key_of(reader, order.once)
    try:
        made = made_before(run, key) or forks.fork(
            run, at=order.at, by=reader, patch=typed.patch, config=config, version=order.version, title=order.title,
            seen=order.seen, key=key,
        )  # fmt: skip
    except RewindRefused as refusal:
        return refused(request, run, order, refusal)
    return redirect("run", made.pk)


def key_of(reader: User, key: str) -> str | None:
    """The key as it is kept: each person's are their own. None where none was given."""
    return f"fork:{reader.pk}:{key}" if key else None


def made_before(run: Run, key: str | None) -> Run | None:
    """The fork that was made with this key. What it has done since is no reason to refuse the same order again."""
    kin = Run.objects.filter(lineage=run.lineage, forked_from__isnull=False, key=key)
    return kin.first() if key else None


def refused(request: HttpRequest, run: Run, order: Order, refusal: RewindRefused | None = None) -> HttpResponse:
    """The page with what was typed, and why nothing was done."""
    status = orders.status_of(refusal) if refusal else 422
    context = fork_context(run, order) | orders.notice(refusal or RewindRefused("", [{"pointer": "", "message": ""}]))
    return render(request, "runs/fork.html", context, status=status)


def fork_context(run: Run, order: Order) -> dict[str, Any]:
    """For runs/fork.html and runs/_order_panel.html."""
    checkpoint = checkpoint_or_404(run, order.at)
    order = replace(order, key=order.key or uuid.uuid4().hex)
    context: dict[str, Any] = {"run": run, "checkpoint": checkpoint, "kind": "fork"}
    try:
        state = store.load_checkpoint(checkpoint.id).state
    except NotVerified as unverified:
        return context | {"order": order, "unverified": unverified}
    typed, (config, wrong) = editors.read(orders.plan_at(checkpoint), state, order.texts), config_of(run, order)
    faults, shown, refused = list(typed.faults), None, None
    if not faults and not wrong:
        heading = f"If you fork from checkpoint {checkpoint.seq}"
        look = partial(impacts.of_fork, run, order.at, typed.patch, config, order.version)
        shown, refused = orders.attempt(look, VERB, heading)
        of_config = refused is not None and isinstance(refused.__cause__, InputRefused)
        wrong += [each["message"] for each in refused.errors] if refused and of_config else []
        faults += refused.errors if refused and not of_config else []
    context |= {
        "order": order,
        "shown": shown,
        "refused": orders.sentence(refused),
        "versions": versions(checkpoint.plan),
        "version": order.version or checkpoint.plan.version,
        "config": order.config if order.config is not None else recorded_config(run),
        "config_faults": wrong,
    }
    return context | state_context(checkpoint, state, order, typed, faults)


def versions(plan: Plan) -> list[str]:
    """The versions of the agent that this server has, and the one of the checkpoint."""
    known = {version for name, version in registry.agents() if name == plan.agent}
    return sorted(known | {plan.version})


def recorded_config(run: Run) -> str | None:
    """The run's configuration as JSON; None where its agent has none."""
    found = environment.recorded(run).get("config")
    return as_json(found) if found is not None else None


def config_of(run: Run, order: Order) -> tuple[dict[str, Any] | None, list[str]]:
    """The configuration that was typed, None for the run's own, and what is wrong with it."""
    if order.config is None or not order.config.strip():
        return None, []
    try:
        found = parse(order.config)
    except ValueRefused as error:
        return None, [error.reason]
    if not isinstance(found, dict):
        return None, ["has to be a JSON object"]
    return (None if found == environment.recorded(run).get("config") else found), []
