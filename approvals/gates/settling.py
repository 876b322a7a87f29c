"""Ends a gate now, or at the end of the undo window that its policy gives.

Until then the gate stays open, so that nothing of it can run: an undo needs no way back from "decided", and a crash
loses nothing. The sweeper ends it, see approvals.decisions.undoing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from approvals.audit import evidence
from approvals.models import Gate, Proposal
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.postgresql.sql import Statement

from . import closing
from .closing import GateEnd


def end_or_wait(
    gate: Gate,
    standing: Proposal,
    end: GateEnd | None,
    *,
    told: Sequence[event_log.Entry],
    beside: Sequence[Statement] = (),
    anew: bool = False,
) -> None:
    """End a gate that `move` has locked, or let it wait for the end of its undo window; None: it stays open.

    A decision that would end it in the same way as the one that waits changes nothing about when, unless it is `anew`,
    of a proposal that it made. `told`: events to write before; `beside`: statements for while it stays open.
    """
    window = gate.policy.undo_window
    if end is None:
        event_log.append_events([*told, *([reconsidered(gate, standing)] if gate.settles_at else [])], extras=beside)
    elif window is None:
        closing.close(gate, standing, end, told=told)
    elif gate.settles_as == end.kind and not anew:
        event_log.append_events(told, extras=beside)
    else:
        event_log.append_events([*told, _waits(gate, standing, end, window)], extras=beside)


def reconsidered(gate: Gate, standing: Proposal) -> event_log.Entry:
    """Forget the decision that waits, and return the event that tells of it."""
    was = gate.settles_as
    gate.stay_open()
    return gate.entry("gate.reconsidered", by=SYSTEM, data={"kind": was, **evidence.opened(gate, standing)})


def _waits(gate: Gate, standing: Proposal, end: GateEnd, window: timedelta) -> event_log.Entry:
    at = gate.settle_later(end.kind, window)
    data = {"kind": end.kind, "settles_at": at.isoformat(), **evidence.opened(gate, standing)}
    return gate.entry("gate.settling", by=end.by, data=data)
