"""A gate's page: its form, its saved state, its changes, and its choices with the impact and the button of each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

from django.utils import timezone
from django.utils.functional import cached_property

from approvals.cards import verdicts
from approvals.cards.action import EDIT
from approvals.decisions import per_action
from approvals.decisions.decision_impact import DecisionImpact
from approvals.decisions.edit import CurrentProposal, NextProposal
from approvals.english import quote_titles
from approvals.errors import DecisionRefused
from approvals.gates import closing
from approvals.impact import Impact, ImpactVerdict
from approvals.impact.result import names
from approvals.presentation.decision_form import posted, send_button
from approvals.presentation.decision_form.actions import AnswerForm
from approvals.presentation.decision_form.verdict_choice import UNSENT, ChosenVerdict, so_far
from approvals.presentation.drawing import impact_words
from approvals.presentation.drawing.impact_words import WordedImpact
from approvals.presentation.gate_facts import agreement
from checkpoints import actors

from .changes import ShownChanges
from .gate_form import GateForm
from .saved_state import ShownState

DOING = {
    "approve": "Approving",
    "each": "Sending this",
    "edit": "Approving",
    "override": "Replacing",
}


@dataclass
class OfferedChoices:
    """The choices that a gate's page offers, each with its impact."""

    page: GateForm
    saved: ShownState

    @cached_property
    def approved(self) -> Impact:
        """Return the impact of an approval, which a list of gates needs alone."""
        return self.page.future.approve()

    @cached_property
    def approval(self) -> WordedImpact:
        """Return the same as the page shows it."""
        return self._approving("approve", self.approved, current=True)

    @cached_property
    def expected(self) -> dict[str, Impact]:
        """Return the impacts of other choices that approve."""
        future, mix = self.page.future, self.mix
        edited, put = (
            future.with_patch([dict(each) for each in typed.patch], typed.card) if typed.patch else self.approved
            for typed in (self.page.typed, self.page.instead)
        )
        chosen = future.with_patch([dict(each) for each in mix.patch], mix.card) if mix else self.approved
        return {"each": chosen, "edit": edited, "override": put}

    @cached_property
    def impacts(self) -> dict[str, WordedImpact]:
        expected, stop = self.expected, self.page.future.stop()
        return {
            "approve": self.approval,
            "each": self._approving("each", expected["each"], current=self.mix is None or not self.mix.changed),
            "edit": self._approving("edit", expected["edit"], current=False),
            "override": self._approving("override", expected["override"], current=False),
            "stop": self._offered("stop", impact_words.stop(stop, self.page.agreement), stop),
        }

    def _approving(self, choice: str, impact: Impact, *, current: bool) -> WordedImpact:
        page = self.page
        only_asks = page.plan.external and not page.card.allows  # an external program, which calls its tools by itself
        tools = dict.fromkeys(action.tool for action in page.card.actions if action.tool and only_asks)
        drawn = impact_words.approval(choice, impact, page.agreement, current=current, elsewhere=tuple(tools))
        if choice == "edit" and page.asks_only:
            drawn = replace(drawn, heading=impact_words.HEADINGS["answer"])
        return self._offered(choice, drawn, impact, left=page.agreement.left(current=current))

    def _offered(
        self, choice: str, worded: WordedImpact, impact: Impact | None, *, left: int = 0, place: str = ""
    ) -> WordedImpact:
        """Add to a worded impact what its form posts: the mark of what was shown, and the boxes to confirm.

        `left`: how many more people have to approve after it.
        """
        binding = DecisionImpact(impact=impact, left=left)
        ticks = impact_words.ticks(
            binding.repeats, run=self.page.gate.run_id, doing=DOING.get(choice, "This"),
            ticked=self.page.sent.confirm.get(choice, ()),
            missing=self.page.unconfirmed if choice == self.page.unconfirmed_at else (),
        )  # fmt: skip
        return replace(worded, choice=choice, place=place or choice, shown=binding.mark, ticks=ticks)

    @cached_property
    def back_to(self) -> list[str]:
        """List the steps to which the run can be sent back, the nearest first."""
        ran = {line.saved.step for line in self.saved.steps} | {self.page.card.on_reject}
        return [step for step in reversed(self.page.card.back_to) if step in ran]

    @cached_property
    def backs(self) -> list[tuple[str, str, WordedImpact]]:
        """List the same steps, each with its title and impact."""
        found = []
        for at, step in enumerate(self.back_to, 1):
            impact = self.page.future.back(step)
            drawn = impact_words.back(impact, step, self.page.agreement)
            offered = self._offered(posted.BACK + step, drawn, impact, place=f"back-{at}")
            found.append((step, self.page.plan.title_of(step), offered))
        return found

    @property
    def chosen_back(self) -> str:
        return self.page.sent.back_to or self.page.card.on_reject or (self.backs[0][0] if self.backs else "")

    @property
    def chosen_then(self) -> str:
        """Return what a rejection does unless chosen otherwise: never end the run."""
        return self.page.sent.then or ("back" if self.page.card.on_reject and self.backs else "")

    @cached_property
    def asked(self) -> list[tuple[AnswerForm, WordedImpact]]:
        """List each answer with its impact."""
        return [(each, self._answered(each, f"answer-{n}")) for n, each in enumerate(self.page.answers, 1)]

    def _answered(self, answer: AnswerForm, place: str) -> WordedImpact:
        standing = (self.page.proposal.content["answer"] or {}).get("choice") in (None, answer.id)
        impact = self.page.future.answering(answer.id)
        drawn = WordedImpact(heading="")
        if impact is not None:
            drawn = impact_words.approval("answer", impact, self.page.agreement, current=standing)
        votes = self._votes(standing=standing)
        runs = self._allowed if answer.grants else ""
        left = self.page.agreement.left(current=standing)
        offered = self._offered(posted.ANSWER + answer.id, drawn, impact, left=left, place=place)
        return replace(offered, sends=send_button.answering(answer.label, runs, votes=votes))

    @property
    def expiry(self) -> str:
        """Say what follows after the deadline."""
        if team := self.page.read.desk.at_deadline:
            return f"Then {team} is asked too, and there is more time"
        if closing.deadline_approves(self.page.gate, self.page.proposal):
            asks = bool(self.page.future.approve().repeats)  # nobody is there to confirm repeats
            return impact_words.expiry(self.page.future.expire()) if asks else "Then it is approved automatically"
        return impact_words.expiry(self.page.future.expire(closing.deadline_stops(self.page.gate, self.page.proposal)))

    @cached_property
    def summary(self) -> str:
        """Say what an approval does: `Pays a refund €5.25 and sends an e-mail, each once`."""
        if not self.page.card.allows:
            recorded = any(step.kind == "effect" for step in self.page.plan.steps)  # else its steps may do anything
            acts = self.page.open and any(row.kind == "effect" for row in self.page.future.approve().will)
            acts |= not recorded
            return "The agent continues" if acts else "The agent continues. Nothing is paid or sent yet"
        return send_button.once(self.page.card, self.page.plan, stands=self._stands("approve"))

    @cached_property
    def held(self) -> agreement.HeldDecision | None:
        """Describe the decision that waits for the end of its undo window; None where none does."""
        page = self.page
        if not page.gate.settles_at or not page.open:
            return None
        then = "The agent continues with this answer" if page.card.question else self.summary
        return agreement.held(page.gate, page.agreement, then=then, now=timezone.now())

    def _stands(self, choice: str) -> frozenset[str]:
        """Return the effects that the choice reuses, since they were done with this very input."""
        if not self.page.open:
            return frozenset()
        impact = self.approved if choice == "approve" else self.expected[choice]
        rows = {verdict: names(impact.having(verdict, kind="effect")) for verdict in ImpactVerdict}
        return frozenset(rows[ImpactVerdict.STANDS]) - {*rows[ImpactVerdict.WILL], *rows[ImpactVerdict.MAY]}

    @cached_property
    def undo(self) -> str:
        """Say whether the effects of an approval can be undone."""
        page, actions = self.page, self.page.card.actions
        allowed = [step for step in page.plan.steps if step.name in page.card.allows]
        final = tuple(step.title for step in allowed if step.irreversible)
        if page.open:
            final = next((row.names for row in self.approval.rows if row.effect == "oneway"), ())
        if final:
            return f"{quote_titles(final)} cannot be undone"
        new = [step for step in allowed if step.name not in self._stands("approve")]
        undone_by = [action.undo for action in actions if new] + [step.undo for step in new]
        if not any(undone_by):
            return ""
        theirs = any(page.provenance.quotes(action) for action in actions)
        return f"can be undone, says {page.provenance.agent}" if theirs else "can be undone"

    def _votes(self, *, standing: bool) -> str:
        """Say which approval this would be, where several are needed."""
        return self.page.agreement.number_of(current=standing) if self.page.agreement.quorum > 1 else ""

    @cached_property
    def commit(self) -> str:
        """Word the large button, which approves the current proposal."""
        stands, votes = self._stands("approve"), self._votes(standing=True)
        return send_button.approving(self.page.card, self.page.plan, edited=False, stands=stands, votes=votes)

    @property
    def edit_commit(self) -> str:
        """Word the button for the typed edit; in general where it has faults, or nothing is typed."""
        typed, page = self.page.typed, self.page
        if any(each["message"] != UNSENT for each in typed.errors) or not (typed.card or typed.arguments):
            return "Approve with edit"
        card = typed.card or page.card.with_arguments(dict(typed.arguments))
        votes, stands = self._votes(standing=False), self._stands("edit")
        if page.ballots and page.verdict == "each":
            edited = dict.fromkeys(typed.arguments, EDIT)
            verdicts = {name: each.chosen.verdict for name, each in page.ballots.items()}
            return send_button.deciding(card, page.plan, {**verdicts, **edited}, stands=stands, votes=votes)
        return send_button.approving(card, page.plan, edited=True, stands=stands, votes=votes)

    @property
    def answer_commit(self) -> str:
        """Word the button that sends an answer, until one is chosen."""
        if not any(choice.grants for choice in self.page.answers):
            return "Send this answer"
        if self.page.agreement.tally.left > 1:
            return "Agree to this answer"
        return f"Send this answer and run {self._allowed}"

    @property
    def _allowed(self) -> str:
        return quote_titles(map(self.page.plan.title_of, self.page.card.allows))

    @cached_property
    def mix(self) -> NextProposal | None:
        """Return the proposal that the choices so far make.

        None without choices, and where they are no valid decision or reject every action.
        """
        page, chosen, typed = self.page, self.page.sent.each, self.page.typed
        if not (page.ballots and chosen):
            return None
        said = {
            action.id: so_far(action, chosen.get(action.id, ChosenVerdict()), typed.arguments, typed.errors)
            for action in page.card.actions
        }
        with suppress(DecisionRefused):
            by_action = verdicts.read(said, page.card)
            if not by_action.rejects_all:
                current = CurrentProposal.of(page.gate, page.proposal)
                return per_action.mixed(current, by_action, by=actors.of_user(page.user).name)
        return None

    @property
    def mix_commit(self) -> str:
        """Word the large button where each action is decided by itself."""
        verdicts = {name: each.chosen.verdict for name, each in self.page.ballots.items()}
        made, typed = self.mix, self.page.typed
        if made is None and typed.arguments:
            return send_button.SEND
        votes = self._votes(standing=made is None or not made.changed)
        card, stands = made.card if made else self.page.card, self._stands("each")
        return send_button.deciding(card, self.page.plan, verdicts, stands=stands, votes=votes)


@dataclass
class GatePage(GateForm):
    """The page of one gate, for its templates. Every part is read on first use."""

    saved: ShownState = field(init=False)
    changed: ShownChanges = field(init=False)
    choices: OfferedChoices = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.saved, self.changed = ShownState(self), ShownChanges(self)
        self.choices = OfferedChoices(self, self.saved)
