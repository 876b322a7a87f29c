"""Detects changes of an agent's code while runs of the same version are under way.

A run follows the plan that it was started with. When the code of that version has changed, no worker may continue the
run: the new code might do something that nobody approved. The version is therefore not served until the old code is
back, the class has another version, or the runs have ended. While an agent is being written (HOLDPOINT_DEVELOPMENT),
the changed code is served all the same, and the runs that began with other code wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.runs.plans import PlanSpec

NAMED = 5  # runs by number
CANCELLED = 100  # runs that one command names


def under_way(spec: PlanSpec, *, among: QuerySet[Run] | None = None) -> list[int]:
    """List the live runs of this version, of `among` if given, that were planned with other code, the oldest first."""
    asked = (spec.agent, spec.version, spec.digest)
    found = _under_way(*asked) if among is None else _of_other_code(*asked, among=among)
    return [run.pk for run in found]


def _of_other_code(agent: Any, version: Any, digest: Any, *, among: QuerySet[Run] | None = None) -> QuerySet[Run]:
    runs = (Run.objects.all() if among is None else among).filter(status__in=Run.LIVE, plan__external=False)
    same = runs.filter(plan__agent=agent, plan__version=version).exclude(plan__digest=digest)
    return same.order_by("pk").only("pk")


@prepared_statement
def _under_way(agent: Any, version: Any, digest: Any) -> QuerySet[Run]:
    return _of_other_code(agent, version, digest)


def sentence(spec: PlanSpec, runs: Sequence[int]) -> str:
    """Say which runs wait, what is not served, and what can be done about it."""
    numbers, more = runs[:NAMED], ", …" if len(runs) > NAMED else ""
    named = ", ".join(f"R-{pk}" for pk in numbers) + more
    if len(runs) > 1:
        waits, them, it, those = f"{len(runs)} of its runs are", "those runs wait for the code they", "them", "the runs"
    else:
        waits, them, it, those = "1 of its runs is", "that run waits for the code it", "it", "the run"
    rest = "new runs start with the changed code" if settings.HOLDPOINT_DEVELOPMENT else "no other is started"
    return (
        f"The code of {spec.agent} {spec.version} changed while {waits} under way ({named}); {them} began with, and "
        f"{rest}. Put that code back, or give the class another version (with an "
        f'@upcast("{spec.version}") it takes {it} over), or cancel {those}: '
        f".venv/bin/python manage.py cancel {' '.join(map(str, runs[:CANCELLED]))}"
    )
