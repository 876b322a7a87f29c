"""Says who decided at a gate, and why a run ended there."""

from __future__ import annotations

from django.utils.translation import gettext as _

from approvals.models import Outcome
from checkpoints.actors import SYSTEM, Actor


def why_ended(outcome: Outcome) -> str:
    """Say why the run ended at the gate, with the words of whoever ended it."""
    if outcome.kind == Outcome.Kind.EXPIRED:
        return _("Nobody decided in time")
    if outcome.kind == Outcome.Kind.WITHDRAWN:
        return _("The gate was withdrawn: %(reason)s") % {"reason": outcome.words}
    said = _("Rejected by %(person)s: %(reason)s") if outcome.words else _("Rejected by %(person)s")
    return said % {"person": name(outcome), "reason": outcome.words}


def name(outcome: Outcome) -> str:
    """Return the name of whoever decided."""
    return outcome.by_name or outcome.by


def who(outcome: Outcome) -> Actor:
    """Return whoever decided; the system where nobody did."""
    return Actor(outcome.by, outcome.by_name) if outcome.by else SYSTEM
