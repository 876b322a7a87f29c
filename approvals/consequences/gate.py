"""Computes what each choice at an open gate would do, from the gate and its run's records as they are now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils.functional import cached_property

from approvals.cards import binding
from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.engine_rules import permissions
from approvals.impact import Impact, impact
from approvals.impact.choices import GateChoices, SavedState
from approvals.impact.facts import ABSENT, GateFact, GrantFact, MoveTarget, RecordedHistory
from approvals.impact.performing import repeats
from approvals.models import Gate
from checkpoints import store
from checkpoints.errors import NoSuchCheckpoint
from checkpoints.store.loading import CheckpointHeader
from checkpoints.values import json_pointer, patch
from checkpoints.values.ops import DROP
from checkpoints.values.patch import Op

from .impact_sources import history_of


class GateImpacts:
    """The impacts of the choices at one gate. The history is read once, on first use."""

    def __init__(self, gate: Gate, card: Card, standing: Sequence[Op]) -> None:
        self.gate, self.card, self.standing = gate, card, list(standing)

    @cached_property
    def history(self) -> RecordedHistory:
        return history_of(self.gate.run)

    @cached_property
    def fact(self) -> GateFact:
        found = next((each for each in self.history.gates if each.id == self.gate.pk), None)
        return found or GateFact(
            id=self.gate.pk, run=self.gate.run_id, seq=self.gate.saved.seq, step=self.gate.step, input_digest=None,
            recovery=self.gate.kind == Gate.Kind.RECOVERY,
        )  # fmt: skip

    @cached_property
    def saved(self) -> SavedState:
        """Return the state that the gate shows; the newest one where the run went on from the gate."""
        found = store.load(self.gate.run) if self.fact.beside else self.gate.saved
        return SavedState(found.state, found.fields, found.list_format)

    @property
    def choices(self) -> GateChoices:
        return GateChoices(self.history, self.fact, self.saved)

    def approve(self) -> Impact:
        """Preview approval of the current proposal, with any edit in it."""
        return self.with_patch(self.standing)

    def with_patch(self, operations: Sequence[Op], card: Card | None = None) -> Impact:
        """Preview approval of the state after a JSON Patch, and of what `card` settles. Raises ValueRefused."""
        card = card or self.card
        before = self.saved.state
        state = patch.apply(list(operations), dict(before))
        writes = {
            name: state.get(name, DROP)
            for name in {*state, *before}
            if name not in before or state.get(name) is not before[name]
        }
        now = self.saved.with_writes(writes)
        touched = patch.touched_members(operations)
        decision = "mixed" if card.settled else "edited" if operations else "approved"
        choices = GateChoices(self.history, self.fact, now)
        start = choices.reached(touched)
        begun = self._before(start)
        if start is None or begun is None:
            given, refused = self._grants(now, card), [action for action in card.actions if action.settled]
            return self._told(choices.approving(grants=given, refused=refused, decision=decision), card.actions)
        return self._told(choices.asking_anew(start, touched=touched, before=begun, decision=decision))

    def answering(self, choice: str) -> Impact | None:
        """Preview an answer to the gate's question; None for an unknown answer."""
        if self.fact.recovery:
            known = self.choices.answering(choice)
            return None if known is None else self._told(known)
        offered = self.card.question["choices"] if self.card.question else []
        found = next((each for each in offered if each["id"] == choice), None)
        if found is None:
            return None
        given = self._grants(self.saved, self.card) if found.get("grants") else []
        return self._told(self.choices.approving(grants=given, decision="answered"), self.card.actions)

    def stop(self) -> Impact:
        """Preview a rejection that ends the run."""
        return self._told(self.choices.stopping())

    def expire(self, then: str = "") -> Impact:
        """Preview the passing of a deadline that does not approve. `then`: see closing.deadline_stops."""
        return self._told(self.choices.expiring(then))

    def back(self, step: str) -> Impact:
        """Preview a rejection that sends the run back to `step`."""
        start = permissions.sent_back_to(self.history.places, self.fact.step, step, beside=self.fact.beside)
        before = self._before(start)
        return self._told(self.choices.going_back(step, before=before))

    def _before(self, start: CheckpointHeader | None) -> SavedState | None:
        """Load the state from which an execution started; None where there is none, or retention removed it."""
        if start is None or not start.parent:
            return None
        try:
            snapshot = store.load_checkpoint(start.parent)
        except NoSuchCheckpoint:
            return None
        return SavedState(snapshot.state, snapshot.fields, snapshot.list_format)

    def _told(self, target: MoveTarget, actions: Sequence[Action] = ()) -> Impact:
        """Compute the impact with the runs that it ends, and the effects that it repeats.

        A recovery gate asks about those itself.
        """
        told = impact(self.history, target)
        told = replace(told, children=self.history.children(target, told))
        return told if self.fact.recovery else replace(told, repeats=repeats(self.history, target, told, actions))

    def _grants(self, now: SavedState, card: Card) -> list[GrantFact]:
        """List the grants that an approval would give, with the fields that each covers."""
        allowed = binding.pairs(card.actions, card.allows)
        shown = {json_pointer.split_pointer(action.pointer)[0] for action in card.actions if action.pointer}
        return [
            GrantFact(effect=effect, action=action, fields=partial(self._covered, effect, shown, now))
            for action, effect in allowed
        ]

    def _covered(self, effect: str, shown: set[str], now: SavedState) -> dict[str, Any]:
        bound = binding.bound_names(self.history.plan, gate_step=self.gate.step, effect=effect)
        return {name: now.fields.get(name, ABSENT) for name in {*shown, *bound}}
