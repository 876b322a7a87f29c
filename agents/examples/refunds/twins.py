"""Finds another run that has the same mail already."""

from __future__ import annotations

from checkpoints import store
from checkpoints.errors import CheckpointError
from checkpoints.models import Run

from .reading import mail as refunds_mail
from .state import Mail

MOST = 20  # runs of the same title that are looked at, the newest first


def earlier(run_id: int, agent: str, mail: Mail) -> list[int]:
    """Return the ids of the team's earlier runs that handle or have handled this very mail.

    The sender, subject and words are compared. Runs that came to nothing are left out, and so is this run's own
    lineage, which forks share. A mail that is sent anew has another date and another id, so neither is compared.
    """
    mine = Run.objects.filter(pk=run_id).first()
    if mine is None:
        return []
    others = Run.objects.filter(plan__agent=agent, team=mine.team_id, title=mine.title, pk__lt=mine.pk)
    others = others.exclude(status__in=[Run.Status.FAILED, Run.Status.CANCELLED])
    root, said = mine.lineage or mine.pk, _said(mail)
    kin = [each for each in others.order_by("-pk")[:MOST] if (each.lineage or each.pk) != root]
    return sorted(each.pk for each in kin if _mail_of(each) in (said, None))


def _mail_of(run: Run) -> tuple[str, ...] | None:
    """Return what a run's mail says, None if that cannot be read any more.

    By its title such a mail is the same.
    """
    try:
        return _said(Mail.model_validate(store.load(run).state["mail"]))
    except (CheckpointError, KeyError, ValueError):
        return None


def _said(mail: Mail) -> tuple[str, ...]:
    parsed = refunds_mail.parse(mail.octets)
    words = " ".join(parsed.text.split())
    return (parsed.from_address.casefold(), parsed.subject, words or mail.raw)
