"""Gates that stay open while their run goes on: takes up their outcomes, and waits where the run depends on one.

An outcome is saved at the head, wherever the run is by then, as a checkpoint of its own that changes nothing about the
step under way. What a rejection sends the run back from is left behind, and open gates among it are withdrawn.
The gates of a run that fails here are withdrawn with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.gates import opening
from agents.session import gates_beside
from agents.session.run_session import RunSession
from approvals.audit import evidence
from approvals.engine_rules import gates
from approvals.english import quote_titles
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.store import claims
from checkpoints.store.claims import Claim


def beside(session: RunSession) -> list[Gate]:
    """Return the gates that the run went on from, by when they closed, the open ones last."""
    asking = session.asking
    if not asking:
        return []
    rows = Gate.objects.select_related("outcome__proposal").filter(run_id=session.run.pk, checkpoint__in=list(asking))
    found = [gate for gate in evidence.with_end(rows) if asking[gate.checkpoint] == gate.step]
    return sorted(found, key=lambda gate: (gate.closed_at is None, gate.closed_at, gate.pk))


def is_beside(session: RunSession, gate: Gate) -> bool:
    """Tell whether the run went on from this gate, and its outcome is not on the path."""
    return session.asking.get(gate.checkpoint) == gate.step


def sends_away(rows: Sequence[Gate]) -> Gate | None:
    """Return the first of these gates whose outcome ends the run, or sends it elsewhere."""
    closed = (gate for gate in rows if gate.status != Gate.Status.OPEN)
    return next((gate for gate in closed if gate.outcome.kind not in gates.AGREED), None)


def next_closed(session: RunSession, rows: Sequence[Gate]) -> Gate | None:
    """Return the gate whose outcome is saved before the next step; None for none.

    A gate that is opened again for an effect comes before all others that were approved.
    """
    if session.path.head.kind == "reopen":
        return sends_away(rows)
    return next((gate for gate in rows if gate.status != Gate.Status.OPEN), None)


def waited_for(session: RunSession, rows: Sequence[Gate]) -> list[Gate]:
    """Return the open gates that the next step, or the end of the run, waits for."""
    if session.path.head.kind == "reopen":
        return []
    name = session.snapshot.next_step
    return [gate for gate in rows if gates.holds_up(session.plan, session.plan.step(gate.step), name)]


def wait(session: RunSession, rows: Sequence[Gate], held_by: Sequence[Gate]) -> bool:
    """Release the run until one of its gates is decided. False where one was closed meanwhile."""
    reason = f"waits for the decision at {quote_titles([gate.title for gate in held_by])}"
    return opening.wait_for(session, rows, reason)


def fail(claim: Claim, reason: str, *, freeze: bool = False) -> None:
    """End the run as failed, and withdraw its open gates. Raises Fenced."""
    with gates_beside.left(claim.run_id, by=SYSTEM, reason=gates_beside.ENDED):
        claims.release(claim, status="failed", reason=reason, freeze=freeze, by=SYSTEM)
