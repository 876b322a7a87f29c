"""Computes what one person's decision would do now, and checks that it is no more than they were shown.

A page or an API client gets a *mark* with what is shown, and sends it back with the decision. The mark holds a few
bytes of a digest for each act, so that "no more than was shown" can be checked. A decision after which others still
have to agree does nothing by itself, so it always passes. One that closes the gate must do no more than was shown, and
its closing must have been shown too.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from approvals.consequences.errors import ConsequencesChanged, RepeatNotConfirmed
from approvals.consequences.gate import GateImpacts
from approvals.impact import Impact
from approvals.impact.result import ImpactRow, ImpactVerdict, Repeat
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import digests

from .prepared_decision import PreparedDecision
from .submission import Verdict, back_to

CLOSES, WAITS = "closes", "waits"  # the act of ending the gate, or of waiting for others
LENGTH = 32  # hex digits of a mark for each act: too many for a program to find two names that share them


@dataclass(frozen=True, kw_only=True)
class DecisionImpact:
    """The impact of one decision, None where unknown."""

    impact: Impact | None
    left: int = 0  # how many more people have to approve after it
    stamp: str = ""  # of the records by which it was computed

    @property
    def closes(self) -> bool:
        """Tell whether the decision ends the gate, so that its impact happens at once."""
        return self.left == 0

    @property
    def repeats(self) -> tuple[Repeat, ...]:
        """List the effects that it would repeat, which the reviewer has to confirm."""
        return self.impact.repeats if self.impact else ()

    @property
    def mark(self) -> str:
        """Return the mark of the impact, in hex, which a decision carries as `shown`."""
        return "".join(sorted(map(_marked, self._acts)))

    @property
    def _acts(self) -> set[str]:
        return (self.impact.acts() if self.impact else set()) | {CLOSES if self.closes else WAITS}

    def leaving(self, left: int) -> DecisionImpact:
        """Return the same impact where `left` more people have to agree."""
        return replace(self, left=left)

    def beyond(self, shown: str) -> set[str]:
        """Return the acts that were not shown: `shown` is a mark."""
        known = {shown[at : at + LENGTH] for at in range(0, len(shown), LENGTH)}
        return {act for act in self._acts if _marked(act) not in known}

    def check_shown(self, shown: str) -> None:
        """Raise ConsequencesChanged where more would happen than was shown: `shown` is its mark, "" for none."""
        if shown and self.closes and (beyond := self.beyond(shown)):
            raise ConsequencesChanged(self.impact, last=beyond == {CLOSES})

    def check_confirmed(self, effects: Set[int], *, run: int) -> None:
        """Raise RepeatNotConfirmed unless `effects` has the number of each repeated effect."""
        if lacking := [each for each in self.repeats if each.effect not in effects]:
            raise RepeatNotConfirmed(lacking, run=run)


def impact_of(decision: PreparedDecision) -> DecisionImpact:
    """Compute a decision's impact, as if nobody else had to agree. Reads the records of the lineage."""
    submission, proposal = decision.submission, decision.proposal
    future = GateImpacts(decision.gate, proposal.card, proposal.state_patch)
    if decision.next is not None and future.card.question is None:
        impact: Impact | None = future.with_patch(decision.next.patch, decision.next.card)
    else:
        answer = submission.answer if submission.verdict == Verdict.ANSWER else proposal.content["answer"]
        impact = impact_of_vote(future, answer, rejects=decision.rejects, back_to=back_to(submission, future.card))
    return DecisionImpact(impact=impact, stamp=future.history.stamp)


def impact_of_vote(
    future: GateImpacts, answer: Mapping[str, Any] | None, *, rejects: bool, back_to: str
) -> Impact | None:
    """Compute the impact of a vote about the proposal as it is; None for an unknown answer."""
    if rejects:
        return future.back(back_to) if back_to else future.stop()
    if future.card.question is not None:
        return future.answering(str((answer or {}).get("choice", "")))
    return future.approve()


def most_of(plan: PlanSpec) -> DecisionImpact:
    """Return the most that a decision can do where the lineage has done nothing yet: close, and run every effect.

    Nothing can be undone then, or repeated, and no other run ends. What was shown all of it need not be computed again.
    """
    effects = [step.name for step in plan.steps if step.kind == "effect"]
    rows = [ImpactRow(step=name, kind="effect", verdict=ImpactVerdict.MAY) for name in effects]
    return DecisionImpact(impact=Impact(rows=tuple(rows)))


def _marked(act: str) -> str:
    return digests.of_value(["act", act]).hex()[:LENGTH]
