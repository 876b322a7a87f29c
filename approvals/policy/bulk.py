"""Says which gates may be decided together: those of one kind, up to the risk that their policy allows.

*One kind* is the same agent, step and policy, and the same tools with the same verdicts, so that who has read one knows
what the others ask. A risk that an external program states about itself does not count: it would let the program choose
how closely people look.
"""

from __future__ import annotations

from approvals.cards.card import RISKS
from approvals.cards.likeness import kind_digest
from approvals.errors import DecisionRefused
from approvals.models import Gate, Policy

MOST = 200  # gates of one bulk decision
ALLOWED = {Policy.BulkRisk.NONE: 0, Policy.BulkRisk.LOW: 1, Policy.BulkRisk.MEDIUM: 2}  # how many of RISKS


class NoSuchGate(DecisionRefused):
    """A gate that the person may not see, or that does not exist."""

    message = "You see no gate of this number."
    code = "not_found"


class NotTogether(DecisionRefused):
    """A gate that may only be decided by itself."""

    message = "This gate can only be decided by itself; open it."
    code = "not_in_bulk"


def kind_of(gate: Gate) -> str:
    """Return a text that gates of one kind share. Needs the gate's run with its plan."""
    return kind_digest(gate.run.plan.agent, gate.policy_id, gate.step, gate.kind, gate.asked)


def why_alone(gate: Gate) -> str:
    """Say why a gate can only be decided by itself, by what it asks and its policy; "" where it need not be."""
    allowed = RISKS[: ALLOWED[Policy.BulkRisk(gate.policy.bulk_risk)]]
    if gate.asked.question is not None:
        return "The gate asks a question. Open it to answer."
    if not allowed:
        return "The policy has each gate decided by itself."
    if gate.risk not in allowed:
        words = (
            f"The risk is {_named(gate.risk)}; the policy allows at most {_named(allowed[-1])} for decisions together."
        )
        return words
    if gate.run.plan.external and not gate.asked.registered_risk:
        return "The risk is only what the external program says. Open the gate, or have its tools registered."
    return ""


def check(gate: Gate, like: Gate) -> None:
    """Raise NotTogether where a gate may not be decided together with others that are `like` this one."""
    if why := why_alone(gate):
        raise NotTogether(why)
    if kind_of(gate) != kind_of(like):
        raise NotTogether(
            "It is of another kind than the first of the selection. Decide it by itself, or with others of its kind."
        )


def _named(risk: str) -> str:
    return str(Gate.Risk(risk).label).lower()
