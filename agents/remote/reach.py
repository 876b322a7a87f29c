"""The check before every external call about a run, in one statement: its permission, and the run's status.

The statement is written out: putting it together for each call takes longer than the call.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import Http404

from agents.models import Client, Token
from agents.work_errors import NotExternal, WorkNotAllowed
from checkpoints.access import token_scope
from checkpoints.access.permissions import START_RUN, VIEW_RUN, right_in, say_missing_permission, sees_all
from checkpoints.actors import SYSTEM, of_user
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

MISSED = timedelta(seconds=90)  # longer than any request waits
_LOOK = f"""
SELECT r.id, r.status, r.token, r.head, r.halt, r.team_id, p.agent, p.external, r.started_by_id, c.owner_id,
  c.missed_at IS NOT NULL OR c.heard_at < statement_timestamp() - interval '5 seconds',
  EXISTS (SELECT FROM {right_in("r.team_id", VIEW_RUN)} may WHERE may.user_id = $2),
  EXISTS (SELECT FROM {right_in("r.team_id", START_RUN)} may WHERE may.user_id = $2)
FROM checkpoints_run r JOIN checkpoints_plan p ON p.id = r.plan_id LEFT JOIN agents_client c ON c.run_id = r.id
WHERE r.id = $1
"""  # noqa: S608 - constants


class ReachedRun(NamedTuple):
    """A run as one statement saw it."""

    id: int
    status: str
    token: int
    head: UUID | None
    halt: bool
    team: int
    agent: str
    external: bool
    starter: int | None
    claimed_by: int | None  # who owned the token of the program that claimed it last
    silent: bool | None  # whether its program has been silent for some seconds; None where no program has come yet
    seen: bool
    may: bool
    by: int  # the program's owner


def to_work(run_id: int, *, by: User) -> ReachedRun:
    """Return the run, where this person, or the agent that they own, may work on it. Records its program as present.

    Raises Http404, WorkNotAllowed and NotExternal.
    """
    found = run_sql(_LOOK, [run_id, by.pk]) if 0 < run_id < 2**63 else []
    reached = ReachedRun._make([*found[0], by.pk]) if found else None
    if reached is None or not (reached.seen or sees_all(by, VIEW_RUN)):
        raise Http404("No such run")
    if not token_scope.bounds_of(by).take_in(team=reached.team, agent=reached.agent):
        raise Http404("No such run")
    if not reached.may:
        raise WorkNotAllowed(say_missing_permission(by, START_RUN, Group.objects.get(pk=reached.team)))
    if not reached.external:
        raise NotExternal(f"{reached.agent} runs on this server; its workers work on the runs.")
    if reached.silent:
        note_presence(load_run(run_id))
    return reached


def note_owner(run: Run, reached: ReachedRun) -> None:
    """Record, in the caller's transaction, that a program of somebody else than who started the run works on it.

    What it writes is then theirs, see approvals.policy.separation.
    """
    if reached.by != reached.starter:
        record_writer(run, User.objects.get(pk=reached.by))


def record_writer(run: Run, person: User) -> None:
    """Record, in the caller's transaction, that a program of this person works on the run."""
    event_log.record("program.joined", subject=f"run:{run.pk}", run=run, by=of_user(person))


def note_presence(run: Run) -> None:
    """Record that the run's program is present; with an event where it was missed."""
    with transaction.atomic():
        if not Client.objects.heard(run.pk):
            return  # heard of a moment ago, or no program has come yet
        if Client.objects.filter(run=run, missed_at__isnull=False).update(missed_at=None):
            event_log.record("run.heard", subject=f"run:{run.pk}", run=run, by=SYSTEM)


def listens(run: Run, token: Token | None) -> None:
    """Record the run's program as present, if the token is its agent's or the one that it came with."""
    if token is not None and (token.agent or Client.objects.filter(run=run, token=token).exists()):
        note_presence(run)


def load_run(run_id: int) -> Run:
    """Return the run's row, with its plan."""
    return Run.objects.select_related("plan", "team").get(pk=run_id)
