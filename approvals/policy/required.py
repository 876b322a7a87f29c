"""The requirements of a gate's proposal: the policy's own, or those that its rules gave and that the proposal keeps.

Also here: the levels of a policy's escalation: to which team a gate goes when, if nobody has decided by then.

Stored with the policy's version as `[{"team": 7, "after": 3600, "extend": null}, ...]`, times in seconds. A level comes
`after` a time since the gate opened, or at the deadline where that is null; then it moves the deadline by `extend`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import Group

from approvals.cards.card import Card
from approvals.models import Escalation, Gate, Policy, Proposal
from checkpoints.admin.durations import spell_duration
from checkpoints.models import Run
from checkpoints.values.canonical_json import decode_canonical

from . import working_time
from .requirements import Requirements, Role, Rule, Stage, Unclear, combined, required, stages_of
from .rules import expressions, facts
from .rules.facts import GateFacts


def own(policy: Policy) -> Requirements:
    """Return what a policy asks where no rule says otherwise."""
    if policy.stages:
        stages = stages_of(decode_canonical(policy.stages.encode()))
    else:
        role = Role(quorum=max(1, policy.quorum), teams=tuple(policy.reviewer_ids), people=tuple(policy.person_ids))
        stages = (Stage(roles=(role,)),)
    return Requirements(
        stages=stages,
        step_up=policy.step_up,
        deadline=None if policy.deadline is None else int(policy.deadline.total_seconds()),
        on_expiry=policy.on_expiry,
    )


@lru_cache(maxsize=1024)
def rules_of(text: str) -> tuple[Rule, ...]:
    """Read a policy's rules."""
    return tuple(Rule(**each) for each in decode_canonical(text.encode())) if text else ()


def of(proposal: Proposal, policy: Policy) -> Requirements:
    """Return what a proposal needs; frozen with it where the policy has rules."""
    return Requirements.from_text(proposal.requirements) if proposal.requirements else own(policy)


def at(gate: Gate, needs: Requirements) -> Requirements:
    """Return what votes at this gate are counted by: people of the teams that were added to it may fill any role."""
    return needs.widened(gate.reviewer_ids[len(gate.policy.reviewer_ids) :])


def asked(policy: Policy, card: Card, gate: GateFacts, *, before: Requirements | None = None) -> Requirements:
    """Compute what a new proposal needs. `before`: what the one that it replaces needed, which still counts."""
    if not policy.rules:
        return own(policy)
    made = required(own(policy), rules_of(policy.rules), facts.of_proposal(card, gate), matches)
    return combined(before, made) if before else made


def frozen(policy: Policy, requirements: Requirements) -> str:
    """Return the text to store with the proposal; "" where the policy alone says what it needs."""
    return requirements.to_text() if policy.rules else ""


def matches(rule: Rule, known: Mapping[str, Any]) -> bool:
    """Tell whether a rule is true of an action. Raises Unclear."""
    try:
        return expressions.checked(rule.when).is_true(known)
    except expressions.WrongExpression as wrong:  # stored by another release of the library, or by hand
        raise Unclear(f"its condition cannot be read: {wrong}") from None


def gate_facts(run: Run, step: str, *, asked_by: Any, attempt: int) -> GateFacts:
    """Return what rules know of a gate. `asked_by`: the person who answers for the external program, or None."""
    person = asked_by or run.started_by
    return GateFacts(
        agent=run.plan.agent,
        step=step,
        requester=person.username if person else "",
        attempt=attempt,
        external=run.plan.external,
    )


MOST = 9  # levels


@dataclass(frozen=True)
class Level:
    """One level."""

    team: int
    after: timedelta | None  # since the gate opened; None: at the deadline
    extend: timedelta | None = None  # for how long a level at the deadline moves that

    def to_json(self) -> dict[str, Any]:
        """Return it as a policy stores it."""
        return {"team": self.team, "after": _seconds(self.after), "extend": _seconds(self.extend)}


def levels(policy: Policy) -> list[Level]:
    """Return the policy's levels, in order."""
    return [Level(each["team"], _span(each["after"]), _span(each["extend"])) for each in policy.escalation]


def lines(stored: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write stored levels as people type them: `Directors after 2 h`, `Directors at the deadline, 4 h more`."""
    found = list(stored)
    names = dict(Group.objects.filter(pk__in=[each["team"] for each in found]).values_list("pk", "name"))
    return [_line(names.get(each["team"], str(each["team"])), each) for each in found]


def _line(team: str, stored: Mapping[str, Any]) -> str:
    if stored["after"] is not None:
        return f"{team} after {spell_duration(timedelta(seconds=stored['after']))}"
    more = stored["extend"]
    return f"{team} at the deadline" + (f", {spell_duration(timedelta(seconds=more))} more" if more else "")


def planned(policy: Policy, gate: Gate, at: datetime) -> Iterator[Escalation]:
    """Return the escalations to plan for a gate that opens at this moment."""
    for number, level in enumerate(levels(policy), 1):
        due = None if level.after is None else working_time.after(policy, at, level.after)
        yield Escalation(
            gate=gate, number=number, team_id=level.team, due_at=due, extend=level.extend,
            status=Escalation.Status.PLANNED, planned_at=at,
        )  # fmt: skip


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
