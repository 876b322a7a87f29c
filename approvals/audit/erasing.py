"""Erases what a person wrote. The event and its digest stay, so the seals still verify."""

from __future__ import annotations

from django.contrib.auth.models import Group, User
from django.db import transaction

from approvals.errors import Refused
from checkpoints import actors
from checkpoints.access.permissions import ERASE_TEXT, may_in_team, say_missing_permission
from checkpoints.events import event_log
from checkpoints.events.event_proof import ROWS
from checkpoints.models import Event, EventText, Hold, Run

ERASED = "text.erased"
LONGEST = 2_000  # characters of a reason


class ErasureRefused(Refused):
    """Nothing was erased."""


class MayNotErase(ErasureRefused):
    """A person who may not erase texts of this team."""

    message = "You need the permission to erase what people of this team wrote."


class NothingToErase(ErasureRefused):
    """An event without a text."""

    message = "There is no text with this event, or it was erased before."


class HeldByLaw(ErasureRefused):
    """A legal hold on the run."""

    message = (
        "This run has a legal hold, so nothing of it can be erased. Ask the person who set the hold to free it first."
    )


class NoReason(ErasureRefused):
    """An erasure without a reason."""

    message = "Say why it is erased: the reason stays in the audit."


class ReasonStays(ErasureRefused):
    """The reason of an erasure."""

    message = "This text is the reason of an erasure, which stays in the audit."


def erase(event: Event, *, reason: str, by: User) -> None:
    """Erase the text of an event, for good. Raises ErasureRefused."""
    if event.team_id is None or not may_in_team(by, event.team_id, ERASE_TEXT):
        team = Group.objects.filter(pk=event.team_id or 0).first()
        raise MayNotErase(say_missing_permission(by, ERASE_TEXT, team))
    if event.kind == ERASED:
        raise ReasonStays
    if not reason.strip():
        raise NoReason
    with transaction.atomic():
        if event.run_id and _under_legal_hold(event.run_id):
            raise HeldByLaw
        erased, _ = EventText.objects.filter(pk=event.pk).delete()
        if not erased:
            raise NothingToErase
        event_log.record(
            ERASED,
            subject=f"event:{event.pk}",
            by=actors.of_user(by),
            run=Run.objects.filter(pk=event.run_id).first() if event.run_id else None,
            team_id=event.team_id,
            data={
                "event": event.pk,
                "kind": event.kind,
                ROWS: {f"text:{event.pk}": bytes(event.text_digest or b"").hex()},
            },
            text=reason.strip()[:LONGEST],
        )


def _under_legal_hold(run_id: int) -> bool:
    """Tell whether a run or any of its checkpoints is under legal hold; takes the lock under which one is set."""
    list(Run.objects.select_for_update(no_key=True).filter(pk=run_id).values_list("pk"))
    return Hold.objects.standing().filter(run_id=run_id, kind=Hold.Kind.LEGAL).exists()
