"""Forks a run: starts another from one of its checkpoints, optionally with another state, configuration or version.

A fork has no grants and no effects of its own. It reuses the recorded results of its lineage, and where it comes to an
effect that the original run has done, it asks before it takes the result over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from agents.compatibility import edited_states
from agents.definition import registry
from agents.effects import hold_left_behind
from agents.errors import ImpactChanged
from agents.ringing import doorbell
from agents.session import child_runs
from approvals.policy.step_up import Confirmed
from checkpoints import actors, store
from checkpoints.models import Run
from checkpoints.values.patch import Op

from . import confirmation, impact, request, rewind


def fork(
    run: Run,
    *,
    at: int,
    by: User,
    patch: Sequence[Op] = (),
    config: Mapping[str, Any] | None = None,
    version: str = "",
    title: str = "",
    seen: str = "",
    key: str = "",
    confirmed: Confirmed | None = None,
) -> Run:
    """Start another run from checkpoint `at` of this one; the same `key` of the same person gives the same run.

    `patch` changes the state, `config` the configuration, `version` the agent's version. `seen` is the hex digest of
    the impact that was shown, `confirmed` how they confirmed who they are. Raises a RewindRefused: RewindNotAllowed,
    OrderNotConfirmed, ImpactChanged.
    """
    rewind.check_may(run, by)
    mine = f"fork:{by.pk}:{key}" if key else None
    before = Run.objects.filter(lineage=run.lineage, forked_from__isnull=False, key=mine).first() if mine else None
    if before is not None:  # the same order again is not refused for anything that the run has done since
        return before
    with transaction.atomic():
        hold_left_behind.lock_lineage(run)  # the effects that it will depend on are not undone meanwhile
        child_runs.lock_lineage(run)  # nor the children
        chosen = request.wanted(run, at, patch, config, version)
        confirmation.check(run, by, confirmed, chosen.plan)
        if seen and (now := impact.of_fork(run, at, patch, config, version)).digest() != seen:
            raise ImpactChanged(now)
        made = store.fork(
            chosen.target.id,
            by=actors.of_user(by),
            title=title,
            started_by=by,
            writes=chosen.writes,
            plan=chosen.plan,
            next_step=chosen.next_step,
            environment=chosen.environment,
            key=mine,
            within=known.agent.lasts if (known := edited_states.known_agent(chosen.plan.pk)) else None,
        )
        queue = registry.queue_for(chosen.plan)
        transaction.on_commit(lambda: doorbell.ring(made.pk, queue, made.priority))
    return made
