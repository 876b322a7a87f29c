"""Keeps digests of a gate's rows in its sealed events, so that a forged approval is found and not performed.

Each event that moves a gate keeps the digests of the gate, its policy, the current proposal and the teams that were
added to it, and of the decision or the outcome that was written with it. An outcome's digest covers its grants and the
decisions that counted.

An event vouches for what the one before it told, and for what its own transaction changed: of a gate that was not
checked since it was read, `opened`, `decided` and `ended` have no digests, and the gate fails from then on. Whoever
altered a row and had Holdpoint itself move the gate would otherwise get a proof of what they wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from django.db.models import CharField, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast, Concat

from approvals.models import Decision, Gate, Grant, Outcome, Policy, Proposal
from approvals.models.row_digests import digest_row
from checkpoints.audit import covered_rows
from checkpoints.errors import NotVerified
from checkpoints.events import event_proof
from checkpoints.events.event_proof import ROWS
from checkpoints.models import Event
from checkpoints.postgresql.sql import run_sql
from checkpoints.values import digests
from checkpoints.values.canonical_json import decode_canonical

GATE = (
    "run_id", "team_id", "policy_id", "checkpoint", "step", "kind", "status", "version", "proposal", "title", "risk",
    "card", "deadline", "asked_by_id", "attempt", "rejected_before_id", "likeness", "settles_at",
    "settles_as", "ending",
)  # fmt: skip
AUTHORS = ("authors",)  # a row by themselves, since the release before does not know them; without, they are looked up
PROPOSAL = ("gate_id", "number", "body", "digest", "by_id", "patch", "requirements")
DECISION = (
    "gate_id", "proposal_id", "user_id", "verdict", "verdicts", "then", "back_to", "answer", "preconditions", "repeats",
    "comment", "seen", "key", "request", "second_look", "created_at", "shown", "on_behalf_of_id",
)  # fmt: skip
OUTCOME = (
    "gate_id", "proposal_id", "kind", "arguments", "patch", "then", "back_to", "answer", "feedback", "seen", "to_run",
    "bound", "preconditions", "by", "by_name", "created_at",
)  # fmt: skip
Ended = TypeVar("Ended", Gate, Grant)
ENDS = ("gate.closed", "gate.expired", "gate.withdrawn")
OF_CLAIMS = ("gate.claimed", "gate.released")
MOVES = (
    "gate.opened", "gate.edited", "gate.rescheduled", "gate.decided", "gate.lapsed", "gate.settling", "gate.undone",
    "gate.reconsidered", "gate.asks", "gate.escalated", "gate.reassigned", *OF_CLAIMS, *ENDS,
)  # fmt: skip
ALTERED = "differs from what was recorded when the gate was opened, edited or decided"
# The event of a gate's end and its outcome's decisions and grants, for a query that reads a gate with its outcome.
_END = f"""
(SELECT json_build_array(e.kind, e.version, encode(e.data, 'hex'),
  ARRAY(SELECT decision_id FROM approvals_outcome_decisions WHERE outcome_id = approvals_outcome.id ORDER BY 1),
  ARRAY(SELECT action || chr(10) || effect FROM approvals_grant WHERE outcome_id = approvals_outcome.id ORDER BY 1)
)::text FROM checkpoints_event e WHERE e.subject = 'gate:' || approvals_gate.id
  AND e.kind IN ('{"', '".join(ENDS)}') AND NOT (e.kind = 'checkpoint.saved') ORDER BY e.version DESC, e.id LIMIT 1)
"""  # noqa: S608 - constants
_END_OF = f"""
SELECT {_END} FROM approvals_outcome JOIN approvals_gate ON approvals_gate.id = $1 WHERE approvals_outcome.id = $2
"""  # noqa: S608 - constants


def with_end(queryset: QuerySet[Ended]) -> QuerySet[Ended]:
    """Read how each gate ended by its event, for `check_ended`; `queryset`: gates, or grants with their gate joined."""
    return queryset.annotate(**{"end": RawSQL(_END, [], TextField())})  # noqa: S611 - constants


def rows(gate: Gate, standing: Proposal) -> dict[str, str]:
    """Return the digests of a gate, its policy and the current proposal, by the names of their rows."""
    return {
        **_of_gate(gate),
        **gate.policy.rows,
        f"proposal:{standing.pk}": digest_row(standing, PROPOSAL),
        _added(gate): _teams(gate.added_team_ids),
    }


def _of_gate(gate: Gate) -> dict[str, str]:
    wrote = {} if gate.authors is None else {_authors(gate): digest_row(gate, AUTHORS)}
    return {gate.subject: digest_row(gate, GATE), **wrote}


def _authors(gate: Gate) -> str:
    return f"authors:{gate.pk}"


def _added(gate: Gate) -> str:
    return f"added:{gate.pk}"


def _teams(added: Iterable[int]) -> str:
    return digests.of_value(sorted(added)).hex()


def opened(gate: Gate, standing: Proposal) -> dict[str, Any]:
    """Return the row digests for the event of a gate that opens, or whose proposal or reviewers have changed."""
    return {"seen": bytes(standing.digest).hex(), ROWS: rows(gate, standing)} if gate.vouched else {}


def decided(gate: Gate, standing: Proposal, decision: Decision) -> dict[str, Any]:
    """Return the row digests for the event of a decision."""
    if not gate.vouched:
        return {}
    values = {f"decision:{decision.pk}": digest_row(decision, DECISION)}
    return {"seen": bytes(decision.seen).hex(), ROWS: rows(gate, standing) | values}


def ended(gate: Gate, outcome: Outcome, decisions: Sequence[Decision], grants: Iterable[Grant]) -> dict[str, Any]:
    """Return the row facts for the event of a gate that ends: what was seen, what may run, voters and grants."""
    if not gate.vouched:
        return {}
    given = [(grant.action, grant.effect) for grant in grants]
    values = {f"outcome:{outcome.pk}": _outcome(outcome, [decision.pk for decision in decisions], given)}
    return {
        "seen": bytes(outcome.seen).hex(),
        "to_run": None if outcome.to_run is None else bytes(outcome.to_run).hex(),
        "voters": sorted({decision.user_id for decision in decisions}),
        "grants": [list(row) for row in given],
        ROWS: rows(gate, outcome.proposal) | values,
    }


def last_move(gate: str) -> dict[str, Subquery]:
    """Return annotations `told_kind`, `told_version`, `told`: the last event that moved the gate in column `gate`."""
    subject = Concat(Value("gate:"), Cast(OuterRef(gate), CharField()))
    events = Event.objects.sealable().filter(subject=subject, kind__in=MOVES).order_by("-version", "-id")
    columns = {"told_kind": "kind", "told_version": "version", "told": "data"}
    return {name: Subquery(events.values(column)[:1]) for name, column in columns.items()}


def check(standing: Proposal, outcome: Outcome | None = None) -> None:
    """Check a gate, and how it ended, against the last event that moved it; needs what `last_move` reads.

    The gate is vouched for then. Raises NotVerified.
    """
    if not standing.gate.policy.proven:
        raise NotVerified(_name(f"policy:{standing.gate.policy_id}"), covered_rows.NO_EVENT)
    answer: Any = standing
    claim = _proven_digests(
        standing.gate, (answer.told_kind, answer.told_version, answer.told) if answer.told_kind else None
    )
    now = rows(standing.gate, standing)
    if outcome is not None:
        now[f"outcome:{outcome.pk}"] = _whole(outcome)
    if _added(standing.gate) not in claim:  # a process of the release before has moved it
        del now[_added(standing.gate)]
    _compare(now, claim)
    standing.gate.vouched = True


def vouch(standing: Proposal) -> bool:
    """Vouch for a gate in which `check` finds nothing; tell whether it does. For a gate that is moved either way."""
    try:
        check(standing)
    except NotVerified:
        return False
    return True


def check_ended(gate: Gate, outcome: Outcome, end: str | None = None) -> None:
    """Check how a gate ended against the event that tells of it. `end`: as `with_end` read it, where it did.

    Raises NotVerified where there is none, it is not proven, or it tells something else.
    """
    if end is None:
        end = next((found for (found,) in run_sql(_END_OF, [gate.pk, outcome.pk])), None)
    if end is None:
        raise NotVerified(_name(gate.subject), covered_rows.NO_EVENT)
    kind, version, data, decisions, given = decode_canonical(end.encode())
    claim = _proven_digests(gate, (kind, version, bytes.fromhex(data)))
    grants = [item.split("\n", 1) for item in given]
    proposal = {f"proposal:{outcome.proposal_id}": digest_row(outcome.proposal, PROPOSAL)}
    now = {f"outcome:{outcome.pk}": _outcome(outcome, decisions, grants)}
    _compare(_of_gate(gate) | proposal | now, claim)


def check_voices(gate: Gate, voices: Sequence[Decision]) -> None:
    """Check others' decisions at an open gate against their events, before their votes count. Raises NotVerified."""
    if not voices:
        return
    events = covered_rows.covering_events([gate.subject])
    if not all(event.holds for event in events):
        raise NotVerified(_name(gate.subject), covered_rows.UNPROVEN)
    claims = covered_rows.claims(events)
    for voice in voices:
        name = f"decision:{voice.pk}"
        if name not in claims:
            raise NotVerified(_name(name), covered_rows.NO_EVENT)
        if claims[name][0] != digest_row(voice, DECISION):
            raise NotVerified(_name(name), ALTERED)


def _proven_digests(gate: Gate, event: Sequence[Any] | None) -> dict[str, str]:
    """Return the rows' digests in a proven event. Raises NotVerified."""
    data = decode_canonical(bytes(event[2])) if event else {}
    if event is None or ROWS not in data:
        raise NotVerified(_name(gate.subject), covered_rows.NO_EVENT)
    kind, version = event[:2]
    if not event_proof.is_proven(kind, gate.subject, version, data):
        raise NotVerified(_name(gate.subject), covered_rows.UNPROVEN)
    values: dict[str, str] = data[ROWS]
    if gate.authors is not None and _authors(gate) not in values:  # a process of the release before has moved it
        claims = covered_rows.claims([row for row in covered_rows.covering_events([gate.subject]) if row.holds])
        values |= {name: digest for name, (digest, _) in claims.items() if name == _authors(gate)}
    return values


def _compare(now: Mapping[str, str], recorded: Mapping[str, str]) -> None:
    for name, digest in now.items():
        if recorded.get(name) != digest:
            raise NotVerified(_name(name), ALTERED)


def _name(row: str) -> str:
    return row.replace(":", " ")


def _outcome(outcome: Outcome, decisions: Iterable[int], grants: Iterable[Sequence[str]]) -> str:
    given = sorted(list(grant) for grant in grants)
    return covered_rows.digest_of_row(outcome, OUTCOME, decisions=sorted(decisions), grants=given)


def _whole(outcome: Outcome) -> str:
    """Return the digest of an outcome with its decisions and grants, which are loaded unless prefetched."""
    given = [(grant.action, grant.effect) for grant in outcome.grants.all()]
    return _outcome(outcome, [decision.pk for decision in outcome.decisions.all()], given)


def present(numbers: Sequence[int]) -> dict[int, dict[str, str]]:
    """Compute the digests of all rows of these gates, by gate."""
    gates = (
        Gate.objects.filter(pk__in=numbers)
        .select_related("policy")
        .prefetch_related("policy__reviewing", "policy__people", "added")
    )
    found = {gate.pk: _of_gate(gate) for gate in gates}
    for gate in gates:
        gate.policy.reviewer_ids = [team.team_id for team in gate.policy.reviewing.all()]
        gate.policy.person_ids = [person.pk for person in gate.policy.people.all()]
        found[gate.pk] |= gate.policy.rows | {_added(gate): _teams(team.team_id for team in gate.added.all())}
    for proposal in Proposal.objects.filter(gate__in=numbers):
        found[proposal.gate_id][f"proposal:{proposal.pk}"] = digest_row(proposal, PROPOSAL)
    for decision in Decision.objects.filter(gate__in=numbers):
        found[decision.gate_id][f"decision:{decision.pk}"] = digest_row(decision, DECISION)
    for outcome in Outcome.objects.filter(gate__in=numbers).prefetch_related("grants", "decisions"):
        found[outcome.gate_id][f"outcome:{outcome.pk}"] = _whole(outcome)
    return found


def versions_present(numbers: Sequence[int]) -> dict[int, dict[str, str]]:
    """Compute the digests of these versions of policies."""
    return {policy.pk: policy.rows for policy in Policy.objects.filter(pk__in=numbers)}


COVER = covered_rows.CoveredTable(Gate, present, begins=["gate.opened"])
OF_POLICIES = covered_rows.CoveredTable(Policy, versions_present, begins=["policy.changed", "policy.adopted"])
