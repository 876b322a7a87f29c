"""What this server knows of a plan's agent: its code, or, where it lives outside, its state alone."""

from __future__ import annotations

from . import registry
from .outside import plans as outside
from .registry import Registered


def of(plan_id: int) -> Registered | None:
    """The agent version of a plan's row; None where it was deployed once and is not here any more."""
    return registry.plans().get(plan_id) or outside.registered(plan_id)
