"""Taking back what a drill's run has done, so that the next one finds the world as this one did."""

from __future__ import annotations

from collections import Counter

from django.contrib.auth.models import User

from agents.models import Effect
from agents.moves import cancel, rewind
from checkpoints.access.permissions import may
from checkpoints.models import Run

from .answers import Answers
from .walk import walk

Fates = Counter[tuple[str, str]]  # (effect step, status) -> how often


def tidy(run_id: int, answers: Answers) -> tuple[Fates, str]:
    """Send the run back to its beginning and cancel it there, which undoes what can be undone.

    Return what became of its effects, and why not more; empty where nothing is left to say. Nothing is touched where
    none of the people may rewind runs of its team.
    """
    problem = ""
    run = Run.objects.get(pk=run_id)
    people = User.objects.filter(pk__in=answers.people).order_by("pk")
    by = next((each for each in people if may(each, run.team_id, rewind.MAY)), None)
    done = Effect.objects.filter(run=run, undoes=None, status__in=(Effect.Status.DONE, Effect.Status.UNKNOWN))
    if by is not None:
        if done.exists():
            rewind.rewind(run, to=1, by=by, confirm=True)
        cancel.cancel(run, by=by, reason="The drill is over.")
        problem = walk(run_id, answers).stuck
    rows = Effect.objects.filter(run=run, undoes=None).values_list("step", "status")
    return Counter(rows), f"Run {run_id}: {problem}" * bool(problem)
