"""Finds the agent of a plan on this server: its code, or, for an external agent, its state alone."""

from __future__ import annotations

from agents.definition import registry
from agents.definition.registered import RegisteredAgent
from agents.remote import plans as outside


def of(plan_id: int) -> RegisteredAgent | None:
    """Return the agent version of a plan's row; None where it is not deployed here any more."""
    return registry.plans().get(plan_id) or outside.registered(plan_id)
