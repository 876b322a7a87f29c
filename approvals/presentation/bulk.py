"""The list of a bulk decision: each gate with what the decision does, or why it is not decided together with others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.functional import cached_property

from approvals.assignments.errors import ClaimedByOther
from approvals.consequences.errors import DoneAlready, RejectionStands
from approvals.consequences.performed import OutcomeFate, read_fates
from approvals.decisions.bulk.orders import BulkProgress, BulkResult
from approvals.decisions.decision_impact import DecisionImpact
from approvals.decisions.submission import Verdict
from approvals.errors import AlreadySaid, DecisionRefused
from approvals.gates.page.shown_gate import shown
from approvals.impact import Impact
from approvals.models import Gate
from approvals.policy import bulk
from approvals.policy.step_up import Confirmed
from approvals.presentation.drawing import impact_words
from approvals.presentation.gate_facts import outcomes
from approvals.presentation.gate_facts.outcomes import FateWords
from approvals.presentation.gate_facts.provenance import HERE, Provenance
from approvals.presentation.gate_page.page import GatePage
from approvals.presentation.text.exact_call import AT_GATE
from checkpoints import actors, store
from checkpoints.errors import NoSuchCheckpoint, NotVerified


@dataclass
class BulkLine:
    """One gate of the list."""

    page: GatePage
    verdict: str
    like: Gate  # the gate that gives the list its kind: the first that need not be decided by itself

    @property
    def gate(self) -> Gate:
        return self.page.gate

    @property
    def amount(self) -> str:
        return self.page.provenance.amount(self.page.card, masked=AT_GATE)

    @cached_property
    def why_not(self) -> str:
        """Say why this gate will not be decided with the others; "" where it will."""
        page = self.page
        try:
            bulk.check(self.gate, self.like)
            if not page.may_decide:
                return page.ended.words if page.ended else page.why_not
            if (claim := page.read.desk.claim) and claim["by"].pk != page.user.pk:
                return str(ClaimedByOther(actors.of_user(claim["by"]).name, claim["by"].pk))
            if page.preflight and page.preflight.red:
                return "Its run cannot continue from here just now. Open it to see why."
            if page.step_up and page.step_up.until is None:
                return "Its policy asks for your password again. Open it to confirm it."
            if self.approves:
                return self._why_unapproved()
            mine = page.agreement.mine
            return str(AlreadySaid.rejected) if mine is not None and mine.rejects else ""
        except DecisionRefused as refusal:
            return str(refusal)
        except (NotVerified, NoSuchCheckpoint):
            return "Its stored data failed the integrity check."

    def _why_unapproved(self) -> str:
        page = self.page
        if (look := page.second_look) and look.unreadable:
            return f"{look.words} Open it."
        if page.same_done:
            return str(DoneAlready())
        if not page.may_approve:
            return page.agreement.unneeded or str(AlreadySaid())
        against = [each.name for each in page.agreement.voices if each.state == "rejected" and not each.you]
        if against:
            return str(RejectionStands(against[-1]))
        if page.card.unfilled(page.gate.asked):
            return "Something has to be filled in first. Open it."
        if page.card.untaken(page.gate.asked):
            return "One of its actions takes no plain approval. Open it."
        if page.choices.approval.ticks:
            return "It would do something again that was already done. Open it to confirm that."
        return ""

    @property
    def approves(self) -> bool:
        return self.verdict == Verdict.APPROVE

    @cached_property
    def does(self) -> str:
        """Say what the decision does, as the gate's page says it; a rejection stops the run unless it is sent back."""
        if not self.approves:
            return self._rejecting("Nothing runs. The run stops as rejected", self._stop)
        left = self.page.agreement.left(current=True)
        words = self.page.choices.summary
        return words if not left else f"{words}, after {'one more approval' if left == 1 else f'{left} more approvals'}"

    @property
    def back(self) -> str:
        """Say what a rejection that sends it back does; "" where that is not done from here, see `stays`."""
        impact = self._back
        if impact is None or impact.repeats:
            return ""
        step = self.page.plan.title_of(self.page.card.on_reject)
        return self._rejecting(f"Nothing runs. The run goes back to “{step}” with your reason", impact)

    @property
    def stays(self) -> str:
        """Say why a rejection that sends the others back leaves this one open."""
        if self._back is None:
            return "Stays open: its agent names no step to send it back to. Open it to choose one."
        return "Stays open: sent back, it may do something again that was already done. Open it to confirm that."

    @cached_property
    def _stop(self) -> Impact:
        return self.page.future.stop()

    @cached_property
    def _back(self) -> Impact | None:
        step = self.page.card.on_reject
        return self.page.future.back(step) if step else None

    def _rejecting(self, words: str, impact: Impact) -> str:
        """Add what the rejection undoes."""
        undone = impact_words.undone(impact)
        return f"{words}; {undone}" if undone else words

    @property
    def undo(self) -> str:
        return self.page.choices.undo if self.approves else ""

    @property
    def choice(self) -> str:
        """Return what the form posts of it: its number, the digest of its proposal and the mark of the impact."""
        return f"{self.gate.pk}:{self.page.seen}:{self._mark}"

    @property
    def _mark(self) -> str:
        if self.approves:
            return self.page.choices.approval.shown
        ways = [each for each in (self._stop, self._back) if each is not None]  # which of them, the form says
        return "".join(DecisionImpact(impact=each).mark for each in ways)


@dataclass(frozen=True)
class ResultLine:
    """The result of one gate, as a page shows it."""

    result: BulkResult
    became: FateWords | None  # what became of what it let run

    @property
    def provenance(self) -> Provenance:
        return Provenance.of(self.result.gate) if self.result.gate else HERE

    @property
    def state(self) -> str:
        """Return the state that colours it."""
        if self.result.decision is None:
            return "withdrawn" if self.result.item.code else "open"
        if not self.result.decision.counts or self._otherwise:
            return "withdrawn"
        return "rejected" if self.result.decision.rejects else "approved"

    @property
    def icon(self) -> str:
        return {"withdrawn": "warn", "open": "hold", "rejected": "x", "approved": "check"}[self.state]

    @property
    def said(self) -> str:
        """Say the result in a few words."""
        if self.result.decision is None:
            return "Not decided" if self.result.item.code else "Waiting"
        if not self.result.decision.counts:
            return "Taken back, or counts no more"
        if self._otherwise:
            return self._otherwise
        rejected, gate = self.state == "rejected", self.result.gate
        if gate is None or gate.status != Gate.Status.OPEN:
            return "Rejected" if rejected else "Approved"
        if gate.settles_at is not None:
            return "Rejected, and can still be undone" if rejected else "Approved, and can still be undone"
        return "Approved by you, others must too"

    @property
    def _otherwise(self) -> str:
        """Say how the gate ended, where that is not what was decided here; "" elsewhere."""
        gate, decision = self.result.gate, self.result.decision
        outcome = getattr(gate, "outcome", None)
        if gate is None or decision is None or outcome is None:
            return ""
        nobody = outcome.kind in (outcome.Kind.EXPIRED, outcome.Kind.WITHDRAWN)
        if not nobody and decision.rejects == (outcome.kind == outcome.Kind.REJECTED):
            return ""
        how = gate.get_status_display() if nobody else outcome.get_kind_display()
        if decision.rejects:
            return f"You rejected it, and it ended otherwise: {how}"
        return f"You approved it, and it ended otherwise: {how}"


@dataclass(frozen=True)
class BulkResults:
    """All results of a bulk decision, with what became of those that were decided."""

    lines: list[ResultLine]

    @classmethod
    def of(cls, found: BulkProgress) -> BulkResults:
        """Read what became of the gates; two statements."""
        fates = read_fates([each.gate for each in found.results if each.gate])
        return cls([ResultLine(each, _became(each.gate, fates)) for each in found.results])

    @property
    def became(self) -> list[FateWords]:
        return [each.became for each in self.lines if each.became and each.result.decision]

    @property
    def summary(self) -> str:
        """Say what became of the gates that were decided: `3 done, 4 asked again: …`; "" where nothing was let run."""
        return outcomes.count_fates(self.became)

    @property
    def open(self) -> bool:
        """Tell whether that may still change."""
        return any(each.open for each in self.became)


def _became(gate: Gate | None, fates: Mapping[int, OutcomeFate]) -> FateWords | None:
    outcome = getattr(gate, "outcome", None)
    if gate is None or outcome is None:
        return None
    return outcomes.describe_fate(fates.get(gate.pk), outcome.proposal.card)


@dataclass(frozen=True, kw_only=True)
class BulkList:
    """The list of a bulk decision before it is sent."""

    verdict: str
    allowed: list[BulkLine]
    refused: list[BulkLine]
    unknown: int  # numbers that name no gate which the reader sees

    @property
    def approves(self) -> bool:
        return self.verdict == Verdict.APPROVE

    @property
    def backs(self) -> int:
        """Count the gates that a rejection can send back to a step."""
        return 0 if self.approves else sum(bool(line.back) for line in self.allowed)

    @property
    def alike(self) -> int:
        """Count the gates that ask for exactly the same as others which the decision approves; 0 for none."""
        asked = [line.gate.request_digest for line in self.allowed if self.approves and line.gate.proposal == 1]
        return sum(count for digest, count in Counter(asked).items() if digest and count > 1)

    @property
    def first(self) -> BulkLine | None:
        return next(iter(self.allowed), None)


def listed(numbers: Iterable[int], *, verdict: str, reader: User, confirmed: Confirmed | None) -> BulkList:
    """Read these gates for the list, in this order; those that the reader may not see are only counted."""
    with store.reading():
        found = [(number, shown(number, to=reader, listed=True)) for number in numbers]
        pages = [GatePage(each, reader, confirmed=confirmed) for _number, each in found if each is not None]
        store.expect([page.gate.checkpoint for page in pages if page.open])
        gates = [page.gate for page in pages]
        like = next((gate for gate in gates if not bulk.why_alone(gate)), gates[0] if gates else None)
        lines = [BulkLine(page=page, verdict=verdict, like=like) for page in pages if like is not None]
        for line in lines:
            _ = line.why_not or (line.does, line.undo, line.choice)
    return BulkList(
        verdict=verdict,
        allowed=[line for line in lines if not line.why_not],
        refused=[line for line in lines if line.why_not],
        unknown=len(found) - len(pages),
    )
