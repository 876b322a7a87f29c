"""The form of one gate: a sheet for each action, the choices beside them, and the faults of the typed values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.utils.functional import cached_property

from approvals.presentation.decision_form import actions, answer_forms, conflicts, faults, verdict_choice, whole_state
from approvals.presentation.gate_facts import outcomes

from .asked_gate import AskedGate


@dataclass
class GateForm(AskedGate):
    """One gate with the form that decides it."""

    @cached_property
    def standing_state(self) -> dict[str, Any] | None:
        """Return the saved state with any edit in the current proposal; None where whole-state edits are off."""
        return whole_state.state_of(self.proposal) if whole_state.allowed(self.gate, self.card) else None

    @cached_property
    def whole(self) -> whole_state.WholeStateArea | None:
        """Return the text area of the whole state, where the reader may edit it here."""
        if not self.may_send or self.ballots or self.standing_state is None:
            return None
        return whole_state.drawn(self.standing_state, self.typed, self.veil)

    @cached_property
    def sheets(self) -> list[actions.ActionSheet]:
        read_only = not self.may_send or self.card.question is not None
        made = actions.sheets(
            self.card, typed=self.typed, before=self.gate.asked, read_only=read_only, provenance=self.provenance
        )
        judged = {each.action.id: each for each in outcomes.judged(self.outcome)} if self.outcome else {}
        ballots = self.ballots
        return [replace(each, ballot=ballots.get(each.action.id), judged=judged.get(each.action.id)) for each in made]

    @cached_property
    def ballots(self) -> dict[str, verdict_choice.Ballot]:
        """Return each action's own choice; {} where one choice covers all, or the reader may not decide."""
        if not self.may_send or not verdict_choice.has_ballots(self.card):
            return {}
        chosen, errors = self.sent.each, self.typed.errors
        return {each.id: verdict_choice.ballot(each, chosen.get(each.id), errors) for each in self.card.actions}

    @cached_property
    def conflicts(self) -> list[conflicts.ShownConflict]:
        """List what the reader typed over an earlier version where others changed the same."""
        if not self.may_send:
            return []
        state, found = self.standing_state or {}, self.sent.conflicts
        of_state = [(name, each) for name, each in found.items() if conflicts.is_of_state(name)]
        whole = [whole_state.conflict_shown(name, each, state, self.veil) for name, each in of_state]
        return [*conflicts.shown(found, self.sheets), *whole]

    @property
    def can_edit(self) -> bool:
        return any(sheet.form for sheet in self.sheets) or bool(self.whole and self.whole.text is not None)

    @property
    def first_input(self) -> str:
        """Return the id of the first field that can be edited."""
        return next(
            (each.id for sheet in self.sheets for each in sheet.fields if each.open),
            "whole-state" if self.whole else "decide",
        )

    @cached_property
    def missing(self) -> list[str]:
        """List the labels of required values that nobody has filled in yet."""
        sheets = {sheet.action.id: sheet for sheet in self.sheets}
        return [sheets[action.id].label_of(place) for action, place in self.card.unfilled(self.gate.asked)]

    @property
    def asks_only(self) -> bool:
        """Tell whether nothing is proposed, and every action only asks for what is missing."""
        return all(sheet.action.asks_only for sheet in self.sheets)

    @property
    def offers_approve(self) -> bool:
        """Tell whether the proposal may be approved unchanged."""
        return self.may_approve and not self.missing

    @property
    def chosen_verdict(self) -> str:
        return self.verdict or ("edit" if self.missing and not self.ballots else "")

    @cached_property
    def loose_errors(self) -> list[str]:
        """List errors that belong to no action and are shown beside no field."""
        known = {action.id for action in self.card.actions}
        loose = [each for each in self.typed.errors if each["action"] not in known]
        return [each["message"] for each in loose if each["message"] not in self.rejection_errors.values()]

    @property
    def rejection_errors(self) -> dict[str, str]:
        """Return the faults of a rejection's own fields, `comment` and `then`."""
        if self.verdict != "reject":
            return {}
        mine = [each for each in self.typed.errors if each["pointer"] in faults.OF_REJECTION and not each["action"]]
        return {each["pointer"].removeprefix("/"): each["message"] for each in mine}

    @cached_property
    def faults(self) -> list[faults.FormFault]:
        """List the faults of the typed values."""
        rejects = self.verdict == "reject"
        return faults.faults(self.sheets, self.answers, self.typed, rejects=rejects) if self.typed.errors else []

    @cached_property
    def answers(self) -> list[answer_forms.AnswerForm]:
        return answer_forms.answers(self.card, typed=self.typed, quoted=self.provenance.outside)

    @cached_property
    def overridable(self) -> list[actions.ActionSheet]:
        """List the sheets whose arguments may be replaced as JSON, with the typed JSON and its faults."""
        errors = self.typed.errors if self.sent.then == "override" else ()
        return [
            replace(
                sheet,
                value_text=self.sent.override.get(sheet.action.id, sheet.value_text),
                errors=[each["message"] for each in errors if each["action"] == sheet.action.id],
            )
            for sheet in self.sheets
            if sheet.value_text
        ]
