"""Upgrades a run whose version is gone to a registered version that upcasters lead to.

It is tried out before the run is claimed, so that a run which cannot be upgraded stays as it is, its gate open,
and says why on its page. Under the claim, an outcome that was decided and not applied yet is applied first: it was
given on the old state, and applying it needs the old plan, which is data, and no code. Then, in one transaction, the
run's open gates are withdrawn and the new state is saved, as a checkpoint of the new plan. An approval does not carry
over, since it was given for another version: people are asked again.

An effect that the run has performed must keep its name: by it a row of the ledger is adopted or undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import structlog
from django.db import transaction
from django.db.models import Case, Value, When
from pydantic import create_model

from agents.definition import environment, registry, upcast
from agents.definition.agent import Agent, AgentType
from agents.definition.registered import RegisteredAgent
from agents.definition.upcast import UpcastPath
from agents.effects import perform
from agents.errors import ConfigRefused, UpcastFailed
from agents.gates import opening
from agents.models import ChildLink, Effect, Memo, StepCheckpoint, Wait
from agents.ringing import doorbell
from agents.session import translate_history
from agents.session.heartbeat import ClaimBeat
from agents.session.run_path import RunPath
from agents.session.run_session import RunSession
from agents.steps import execute, retry
from agents.steps.local_performer import LOCAL
from approvals.engine_rules import effects
from approvals.english import quote_titles
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import actors, store
from checkpoints.actors import SYSTEM
from checkpoints.errors import NotVerified, ValueRefused
from checkpoints.events import event_log
from checkpoints.models import Plan, Run
from checkpoints.runs.plans import PlanSpec, spec_of
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim, ClaimedRun

from . import apply_outcome, claiming

PERFORMED = (*effects.IN_DOUBT, *effects.LANDED)
log = structlog.get_logger()


class _Decided(Exception):
    """Somebody decided the gate at the head before it could be withdrawn."""


def brought(run: Run, snapshot: Snapshot, way: UpcastPath) -> dict[str, Any]:
    """Return the run's state, upgraded; writes nothing. Raises UpcastFailed.

    A run that went on from a gate which is still open is upgraded once that is decided.
    """
    asking = RunPath.to(snapshot.id).asking() if spec_of(run.plan).goes_on_asking else {}
    if gate := Gate.objects.open().filter(run_id=run.pk, checkpoint__in=list(asking)).order_by("pk").first():
        raise UpcastFailed(
            f"It waits for the decision at {quote_titles([gate.title])}, which was asked for this version"
        )
    gone = way.lacks([snapshot.next_step])
    if gone:
        raise UpcastFailed(f"Version {way.to.spec.version} has no step {gone[0]}, and no upcaster names another")
    mine = Effect.objects.filter(run_id=run.pk, undoes__isnull=True, status__in=PERFORMED)
    kept = {step.name for step in way.to.spec.steps if step.kind == "effect"}
    for name in sorted(set(mine.values_list("step", flat=True))):
        if way.step(name) != name or name not in kept:
            raise UpcastFailed(f"The run has performed {name}, and version {way.to.spec.version} has no effect {name}")
    try:
        environment.config_for(run, way.to.agent)
    except ConfigRefused as error:
        raise UpcastFailed("The recorded configuration does not fit", error.errors) from error
    return upcast.apply(way, snapshot.state)


def claim(run_id: int, *, worker: str) -> ClaimedRun | None:
    """Claim a run whose version is gone and that this worker can upgrade; None where that is not so."""
    names = registry.upcasting_agents()
    waiting = Run.objects.select_related("plan").filter(pk=run_id, status__in=(Run.Status.QUEUED, Run.Status.RUNNING))
    run = waiting.filter(plan__agent__in=names).first() if names else None
    way = None if run is None else registry.way_of(run.plan)
    if run is None or way is None or not _can_be_upgraded(run):
        return None
    return claiming.claim_older(run, way.to.agent.at_once, worker=worker)


def fault(run: Run, way: UpcastPath, snapshot: Snapshot | None = None) -> str:
    """Say why the run cannot be upgraded from its head, or from `snapshot`; empty where it can.

    Empty too for a run that does not verify: the runner freezes that.
    """
    try:
        brought(run, snapshot or store.load(run), way)
    except NotVerified:
        return ""
    except UpcastFailed as error:
        return str(error)
    return ""


def bring_up(claim: Claim, run: Run, beat: ClaimBeat) -> RegisteredAgent | None:
    """Upgrade a claimed run and return its new version; None where this worker has nothing more to do.

    `run` is refreshed from the database. Raises Fenced and NotVerified.
    """
    way = registry.way_of(run.plan)
    if way is None:
        raise LookupError(f"No upcaster leads on from {run.plan}")
    known = registry.stored(way.to)
    if known is None:
        said = f"The code of {way.to.spec.named} changed while runs of it are under way"
        execute.queue_again(claim, retry.backoff(claim.attempts), said, by=SYSTEM)
        return None
    session = RunSession(claim, run, _as_planned(run), store.load(run), beat, claim.attempts, LOCAL)
    try:
        while _caught_up(session):
            try:
                _bring(session, way, known)
            except _Decided:
                continue
            run.refresh_from_db()
            return known
    except (UpcastFailed, ValueRefused) as error:
        log.warning("run.not_upcast", since=way.since, to=way.to.spec.version, reason=str(error))
        execute.queue_again(claim, retry.backoff(claim.attempts), execute.said(error), by=SYSTEM)
    return None


def _caught_up(session: RunSession) -> bool:
    """Apply a decision and adopt a reported effect under the old plan; False where the run does not go on."""
    gate = opening.at_head(session)
    if gate is not None and gate.status != Gate.Status.OPEN and not apply_outcome.settle(session, gate):
        return False
    while (beside := apply_outcome.next_closed(session, apply_outcome.beside(session))) is not None:
        if not apply_outcome.settle(session, beside):
            return False
    if session.snapshot.plan_id != session.run.plan_id:  # sent back to before an earlier upgrade
        hand_over(session)
        return False
    name = session.snapshot.next_step
    spec = session.plan.step(name) if name else None
    row = perform.newest(session, spec) if spec and spec.kind == "effect" else None
    if spec is None or row is None or not (row.adoptable and translate_history.given_by(row, session.run.plan)):
        return True
    return perform.adopt(session, spec, row)


def hand_over(session: RunSession) -> None:
    """Release the run to workers of an older version: it was sent back to before its upgrade to this one."""
    with transaction.atomic():
        claims.release(session.claim, status="queued", by=SYSTEM, attempts=0)
        plan = Plan.objects.get(pk=session.snapshot.plan_id)
        transaction.on_commit(lambda: doorbell.ring(session.run.pk, registry.queue_for(plan), session.run.priority))


def _bring(session: RunSession, way: UpcastPath, known: RegisteredAgent) -> None:
    """Withdraw open gates and save the upgraded state, in one transaction. Raises _Decided, UpcastFailed, Fenced.

    Gates are locked before their run, as in a decision.
    """
    values = brought(session.run, session.snapshot, way)
    name = way.step(session.snapshot.next_step)
    by = actors.of_agent(known.spec.agent)
    to = f"version {known.spec.version}"
    with transaction.atomic():
        asking = Gate.objects.filter(run=session.run).select_for_update().order_by("pk")
        asked_at = [session.snapshot.id, *session.asking]
        for gate in asking.filter(checkpoint__in=asked_at).exclude(status=Gate.Status.OPEN):
            raise _Decided(gate)
        for gate in asking.filter(status=Gate.Status.OPEN):
            closing.withdraw(
                gate, by=by, reason=f"{to.capitalize()} of {known.spec.agent} takes the run over and asks again."
            )
        session.check()
        store.save(
            session.snapshot,
            translate_history.difference(session.snapshot.state, values),
            claim=session.claim,
            header=Header("upcast", name, name),
            notes=[_note(way, session.plan)],
            plan=known.row,
            actor=by,
        )
        if renamed := way.renamed(step.name for step in session.plan.steps):
            # In one statement: a step may get the name that another one has just lost.
            names = Case(*(When(step=old, then=Value(new)) for old, new in renamed.items()))
            ChildLink.objects.filter(parent=session.run, step__in=renamed).update(step=names)
        if (old := session.snapshot.next_step) in renamed:
            _rename_kept(session, old, renamed[old])
        data = {"since": way.since, "to": known.spec.version, "upcasters": [each.name for each in way.upcasters]}
        event_log.record("run.upcast", subject=f"run:{session.run.pk}", run=session.run, by=by, data=data)


def _rename_kept(session: RunSession, old: str, new: str) -> None:
    """Have the step that is under way find under its new name what it waited for, and what its execution kept.

    What earlier executions waited for stays: the path has them under the old name.
    """
    sent = session.path.sent(old) or session.path.head
    bases = [sent.id, *(place.id for place in session.path.after(sent.id) or ())]
    kept = {"run": session.run, "step": old, "base__in": bases}
    Wait.objects.filter(**kept).update(step=new)
    Memo.objects.filter(**kept).update(step=new)
    StepCheckpoint.objects.filter(**kept).rename(new)


def _note(way: UpcastPath, plan: PlanSpec) -> str:
    """Describe the upgrade for the run's page."""
    ran = ", ".join(each.name for each in way.upcasters)
    renamed = way.renamed(step.name for step in plan.steps)
    words = "".join(f" {old} is now {new}." for old, new in renamed.items())
    return f"Upgraded from version {way.since} to {way.to.spec.version} by {ran}.{words}"


def _as_planned(run: Run) -> RegisteredAgent:
    """Return a stand-in, made from its plan alone, for a version whose code is gone: enough to apply a decision."""
    spec = spec_of(run.plan)
    state: dict[str, Any] = dict.fromkeys(spec.state_schema.get("properties", {}), (Any, None))
    config: dict[str, Any] = {name: (Any, value) for name, value in environment.recorded(run).get("config", {}).items()}
    body = {"name": spec.agent, "version": spec.version, "State": create_model("State", **state)}
    agent = AgentType("Gone", (Agent,), body | {"Config": create_model("Config", **config)})
    return RegisteredAgent(cast(type[Agent], agent), spec, run.plan)


def waiting(*, limit: int, but: Sequence[int] = ()) -> list[Run]:
    """Return runs that wait for people and whose version is gone but has an upcast path, without those of `but`.

    A run that waits for its timer is upgraded when that is due, and a held child when its turn comes.
    """
    names = registry.upcasting_agents()
    plans = Plan.objects.filter(agent__in=names).only("agent", "version") if names else ()
    gone = [plan.pk for plan in plans if registry.way_of(plan)]
    if not gone:
        return []
    runs = Run.objects.filter(plan__in=gone, status=Run.Status.WAITING, wake_at__isnull=True).exclude(pk__in=but)
    return list(runs.exclude(as_child__held=True).select_related("plan").order_by("pk")[:limit])


def wake(run: Run) -> bool:
    """Wake the run if it can be upgraded; return whether it was woken."""
    return _can_be_upgraded(run) and run.wake(by=SYSTEM)


def _can_be_upgraded(run: Run) -> bool:
    way = registry.way_of(run.plan)
    reason = fault(run, way) if way else ""
    if way and reason:
        log.warning("run.not_upcast", run=run.pk, since=way.since, to=way.to.spec.version, reason=reason)
    return way is not None and not reason
