"""Finds other runs that have the same mail already."""

from __future__ import annotations

from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Run

from .mail import parse
from .state import Mail

MOST = 20  # runs of the same title that are looked at, the newest first


def find_earlier(run_id: int, agent: str, mail: Mail) -> list[int]:
    """Return the ids of the team's earlier runs that handle or have handled this very mail.

    Its sender, subject and words are compared: one that is sent anew has another date and another id. Runs that came
    to nothing are left out, and so is this run's own lineage, which forks share.
    """
    mine = Run.objects.filter(pk=run_id).first()
    if mine is None:
        return []
    others = Run.objects.filter(plan__agent=agent, team=mine.team_id, title=mine.title, pk__lt=mine.pk)
    others = others.exclude(status__in=[Run.Status.FAILED, Run.Status.CANCELLED]).order_by("-pk")[:MOST]
    root = mine.lineage or mine.pk
    kin = [run for run in others if (run.lineage or run.pk) != root]
    return sorted(run.pk for run in kin if _words_of(run) in (_words(mail), None))


def _words_of(run: Run) -> tuple[str, ...] | None:
    """Return what a run's mail says; None if that cannot be read any more: by its title it is the same."""
    try:
        return _words(Mail.model_validate(store.load(run).state["mail"]))
    except (CheckpointError, KeyError, ValueError):
        return None


def _words(mail: Mail) -> tuple[str, ...]:
    parsed = parse(mail.octets)
    return parsed.from_address.casefold(), parsed.subject, " ".join(parsed.text.split()) or mail.raw
