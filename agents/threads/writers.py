"""Records whose programs wrote a thread, beside who began it: they are authors of what its graph asks about.

See approvals.policy.authorship, which reads these events. An event too many is a person too many who is apart.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from psycopg.types.numeric import Int8

from agents.remote.reach import record_writer
from approvals.policy import authorship
from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import run_sql

from . import places
from .places import Owner, ThreadRun

_KNOWN = """
SELECT EXISTS (SELECT FROM checkpoints_event
  WHERE run_id = $1 AND kind = 'program.joined' AND kind <> 'checkpoint.saved' AND actor = $2)
"""


def note(owner: Owner, thread: ThreadRun) -> None:
    """Record who writes, where that is somebody else than who began the thread's run; once for each."""
    if owner.person is not None and owner.person.pk != thread.starter:
        _record(thread, owner.person)


def take_along(owner: Owner, thread: str, to: str) -> None:
    """Make the authors of a thread those of its copy too."""
    run = Run(team=owner.team, plan=Plan(agent=owner.agent), thread=thread)
    wrote = {contribution.person for contribution in authorship.contributions(run, UUID(int=0), "")}
    for copied in places.of_thread(owner, to)[:1]:
        for person in User.objects.filter(pk__in=wrote - {copied.starter}).order_by("pk"):
            _record(copied, person)


def _record(thread: ThreadRun, person: User) -> None:
    if not run_sql(_KNOWN, [Int8(thread.run_id), f"user:{person.pk}"])[0][0]:
        record_writer(Run.objects.get(pk=thread.run_id), person)
