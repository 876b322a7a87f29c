"""Agents: write one as a class of steps, and Holdpoint runs it durably.

The names are loaded on first use, because Django imports this package before its models are ready.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from approvals.cards.action import Action
    from approvals.cards.card import Card
    from approvals.cards.chart import Chart
    from approvals.cards.drawing import Drawing
    from approvals.cards.precondition import Precondition
    from approvals.cards.quote import Quote
    from checkpoints.values.ops import Append, Splice

    from .definition.agent import Agent, ChildResult, ChildRun, Done, Jump
    from .definition.decorators import effect, gate, observation, on_restore, step, undo, upcast, validator
    from .definition.feedback import ReviewerQuestion
    from .errors import AgentError, ChildFailed, EffectFailed, EffectUnknown, Retry, SignalTimeout, StepFailed

_HOMES = {
    "agents.definition.agent": ("Agent", "ChildResult", "ChildRun", "Done", "Jump"),
    "agents.definition.decorators": (
        "effect", "gate", "observation", "on_restore", "step", "undo", "upcast", "validator",
    ),
    "agents.definition.feedback": ("ReviewerQuestion",),
    "agents.errors": (
        "AgentError", "ChildFailed", "EffectFailed", "EffectUnknown", "Retry", "SignalTimeout", "StepFailed",
    ),
    "approvals.cards.action": ("Action",),
    "approvals.cards.card": ("Card",),
    "approvals.cards.chart": ("Chart",),
    "approvals.cards.drawing": ("Drawing",),
    "approvals.cards.precondition": ("Precondition",),
    "approvals.cards.quote": ("Quote",),
    "checkpoints.values.ops": ("Append", "Splice"),
}  # fmt: skip

__all__ = [
    "Action", "Agent", "AgentError", "Append", "Card", "Chart", "ChildFailed", "ChildResult", "ChildRun", "Done",
    "Drawing", "EffectFailed", "EffectUnknown", "Jump", "Precondition", "Quote", "Retry", "ReviewerQuestion",
    "SignalTimeout", "Splice", "StepFailed", "effect", "gate", "observation", "on_restore", "step", "undo", "upcast",
    "validator",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
