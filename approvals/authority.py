"""Who may decide a gate: asked when somebody decides, and again for every voter when a quorum closes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from checkpoints.permissions import teams_where

from .models import Gate

SIGN_IN = "Sign in to decide."
SWITCHED_OFF = "This account is switched off; ask an administrator."
STARTED_IT = "You started this run, and its policy wants somebody else to decide."


def why_not(user: Any, gate: Gate) -> str:
    """Why this person may not decide this gate, as a sentence; "" where they may.

    Being a superuser is no authority here: they must be in the groups like anybody else. Groups, permissions
    and the account's state are read as they are now, whatever the object in hand says.
    """
    if not user.is_authenticated:
        return SIGN_IN
    person = User.objects.filter(pk=user.pk, is_active=True).first()
    if person is None:
        return SWITCHED_OFF
    groups = gate.policy.reviewers
    if not teams_where(person, "approvals.decide_gate").filter(pk__in=[group.pk for group in groups]).exists():
        names = " or ".join(group.name for group in groups)
        return f"Only people in {names} who may decide gates can decide this one."
    if gate.policy.separation and gate.run.started_by_id == person.pk:
        return STARTED_IT
    return ""
