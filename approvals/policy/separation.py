"""Separation of duties: whoever wrote what a gate asks about does not decide it, nor does who asks.

That is the person who started the run, who owns the token that asks, and the authors of the state, see authorship.py.
The rule is written here twice, for one gate and in SQL for many, and nowhere else.
"""

from __future__ import annotations

from approvals.models import Gate, Policy

from . import authorship

STARTED_IT = "You started this run, and its policy wants somebody else to decide."
ASKED_IT = "You own the token of the program that asks this. Its policy requires somebody else to decide."
WROTE_IT = "You wrote some of what this asks about: the page says where. Its policy requires somebody else to decide."

# True where a person (passed three times) may not decide the gate `g` under the policy `s`.
APART = """(s.separation AND (g.asked_by_id IS NOT DISTINCT FROM %s OR coalesce(%s = ANY(g.authors), false) OR EXISTS (
  SELECT FROM checkpoints_run r WHERE r.id = g.run_id AND r.started_by_id = %s)))"""


def apart(policy: Policy, *people: int | None) -> frozenset[int]:
    """Return those of the people behind a gate who may not decide it under the policy."""
    return frozenset(each for each in people if each is not None and policy.separation)


def apart_from(gate: Gate) -> frozenset[int]:
    """Return the ids of the people who may not decide this gate."""
    wrote = authorship.authors_of(gate) if gate.policy.separation else ()
    return apart(gate.policy, gate.run.started_by_id, gate.asked_by_id, *wrote)


def why_apart(person: int, gate: Gate) -> str:
    """Say why separation of duties bars this person from this gate; "" where it does not."""
    if person not in apart_from(gate):
        return ""
    if person == gate.asked_by_id:
        return str(ASKED_IT)
    return str(STARTED_IT if person == gate.run.started_by_id else WROTE_IT)
