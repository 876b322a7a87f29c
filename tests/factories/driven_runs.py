"""Driving runs by hand: start one, take it on as a worker would, answer its gates."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet

from agents.models import Effect, Failure
from agents.runner import engine
from agents.runs.start import start_run
from approvals.decisions import deciding
from approvals.decisions.submission import Submission
from approvals.models import Decision, Gate
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from tests.factories import REJECTION, ann, make_team, repeatable

LINES = dict[str, list[str]]


def make_run(agent: str, *, team: Group | None = None, started_by: User | None = None, **input: Any) -> Run:
    by = actors.of_user(started_by) if started_by else actors.SYSTEM
    return start_run(agent, input, by=by, team=team or make_team(), started_by=started_by)


def advance(run: Run) -> Run:
    """Take the run on as a worker would, whatever its backoff; the run as it is then."""
    Run.objects.filter(pk=run.pk, status="queued").update(wake_at=None)
    engine.advance(run.pk)
    run.refresh_from_db()
    return run


def advance_to_rest(run: Run, *, turns: int = 20) -> Run:
    for _ in range(turns):
        if advance(run).status not in ("queued", "running"):
            return run
    raise AssertionError(f"{run} is still {run.status} at {run.next_step} after {turns} turns")


def open_gate(run: Run) -> Gate:
    [gate] = _open_gates(run.pk)
    return gate


@prepared_statement
def _open_gates(run: Any) -> QuerySet[Gate]:
    return Gate.objects.open().select_related("run__plan", "policy").filter(run=run)


def decide(run: Run, verdict: str = "approve", *, by: User | None = None, **said: Any) -> Decision:
    """Answer the run's open gate, as ann of its team unless somebody else does; see factories.decide."""
    gate = open_gate(run)
    given = {"seen": bytes(gate.standing().digest), "key": secrets.token_hex(8), "confirm": repeatable(run)}
    given |= REJECTION if verdict == "reject" else {}
    return deciding.decide(gate, Submission(verdict=verdict, **{**given, **said}), by=by or ann(run.team))


def answer(run: Run, choice: str, value: Any = None) -> Decision:
    return decide(run, "answer", answer={"choice": choice, "value": value})


def state(run: Run) -> dict[str, Any]:
    return store.load(Run.objects.get(pk=run.pk)).state


def trail(run: Run) -> list[tuple[str, str]]:
    """(kind, step) of every checkpoint, oldest first."""
    return list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("kind", "step"))


def effects(run: Run, step: str = "") -> list[Effect]:
    found = Effect.objects.filter(run=run).order_by("pk")
    return list(found.filter(step=step) if step else found)


def failures(run: Run) -> list[Failure]:
    return list(Failure.objects.filter(run=run).order_by("pk"))
