"""The receipt of a decided gate: what ran under it, when, with what result, who decided it, and by which digests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.cards.action import Action
from approvals.consequences import performed
from approvals.consequences.performed import OVER, GrantFate, NotRun, OutcomeFate, PerformedEffect
from approvals.models import Gate, Outcome
from approvals.presentation.decision_form import send_button
from approvals.presentation.gate_facts.outcomes import RESULTS, GateEnding
from approvals.presentation.text import untrusted
from approvals.schema.redact import Redaction
from checkpoints import actors
from checkpoints.runs.plans import PlanSpec

MOST = 8  # values of a result that are shown


@dataclass(frozen=True, kw_only=True)
class ReceiptLine:
    """One thing that was let run, and what became of it."""

    number: int
    effect: str  # the title of its step
    step: str
    action: Action | None
    amount: str
    state: str  # one of RESULTS
    word: str
    status: str  # that colours it
    icon: str
    done: PerformedEffect | None
    returned: Sequence[tuple[str, str]] = ()  # (place, value), with secrets masked; untrusted
    error: str = ""  # untrusted

    @property
    def at(self) -> datetime | None:
        """Return when it ended; when it began where it has not."""
        return (self.done.undone_at or self.done.ended_at or self.done.begun_at) if self.done else None


@dataclass(frozen=True, kw_only=True)
class ReceiptVoter:
    """A person whose decision counted."""

    name: str
    verdict: str
    at: datetime
    seen: str  # the digest of the proposal that was on their screen, hex


@dataclass(frozen=True, kw_only=True)
class GateReceipt:
    """The end of one gate, and the fate of what it let run."""

    ending: GateEnding
    lines: Sequence[ReceiptLine]
    voters: Sequence[ReceiptVoter]
    seen: str  # hex
    to_run: str  # hex; empty where nothing may run
    not_run: NotRun | None  # where it is late that nothing has begun
    nothing: str  # why no line is there
    open: bool  # whether it may still change


def of_gate(
    gate: Gate, ending: GateEnding, plan: PlanSpec, veil: Redaction, *, fate: OutcomeFate, sees_run: bool, late: bool
) -> GateReceipt | None:
    """Build the receipt of a closed gate; None without an outcome. Needs its run, outcome and decisions.

    `late`: something should have begun by now. What was returned, and what failed, is the run's, and only for those who
    see it.
    """
    outcome: Outcome | None = getattr(gate, "outcome", None)
    if outcome is None:
        return None
    lines = [
        _line(number, each, outcome, plan, veil=veil if sees_run else None)
        for number, each in enumerate(fate.grants, 1)
    ]
    begun = any(each.grant.begun for each in fate.grants)
    return GateReceipt(
        ending=ending, lines=lines, voters=_voters(outcome), seen=bytes(outcome.seen).hex(), open=fate.open,
        to_run=bytes(outcome.to_run).hex() if outcome.to_run else "",
        not_run=performed.why_not(gate) if late and not begun and gate.run.status not in OVER else None,
        nothing="" if lines else "Nothing was let run.",
    )  # fmt: skip


def _line(number: int, fate: GrantFate, outcome: Outcome, plan: PlanSpec, *, veil: Redaction | None) -> ReceiptLine:
    card, grant, done = outcome.proposal.card, fate.grant, fate.grant.begun
    found = card.action(grant.action) if grant.action else None
    action = found if found and found.effect in ("", grant.effect) else None  # not another effect of the same action
    own = not (plan.external and action and action.in_own_words(external=True))
    said = send_button.amounts_of([action]) if action and own else []
    word, _, status, icon = RESULTS[fate.state]
    return ReceiptLine(
        number=number, effect=plan.title_of(grant.effect), step=grant.effect, action=action, amount=" ".join(said),
        state=fate.state, word=word, status=status, icon=icon, done=done,
        error=done.error if done and veil is not None else "",
        returned=_returned(done.result, veil) if done and veil is not None else (),
    )  # fmt: skip


def _voters(outcome: Outcome) -> list[ReceiptVoter]:
    return [
        ReceiptVoter(
            name=actors.of_user(each.user).name, verdict=str(each.get_verdict_display()), at=each.created_at,
            seen=bytes(each.seen).hex(),
        )
        for each in outcome.decisions.all()
    ]  # fmt: skip


def _returned(result: Any, veil: Redaction) -> list[tuple[str, str]]:
    """List the first values of what a step returned, in the form of agents.definition.outputs, with secrets masked."""
    if not isinstance(result, dict):
        return []
    found: list[tuple[str, str]] = []
    for name, value in result.items():
        if name in (">", "@") or name.endswith("~"):  # where the run goes on; a splice
            continue
        field = name.rstrip("+")
        found += _leaves(veil.within(field).masked(value, f"/{field}"), field)
    return found[:MOST]


def _leaves(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for name, inner in pairs:
            yield from _leaves(inner, f"{at}, {name}")
    elif value is not None and value != {} and value != []:
        yield at, untrusted.plain(value if isinstance(value, str) else json.dumps(value), limit=120)
