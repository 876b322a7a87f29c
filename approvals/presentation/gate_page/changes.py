"""Lists the changes in what a gate asks: people's edits, and what else changed since an approval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from approvals.decisions import edit_state
from approvals.presentation.decision_form import actions
from approvals.presentation.gate_facts import preconditions
from checkpoints.values import json_pointer, patch

from .asked_gate import AskedGate


@dataclass
class ShownChanges:
    """The changes that a gate's page shows."""

    page: AskedGate

    @cached_property
    def edits(self) -> Sequence[dict[str, Any]]:
        """List people's edits in the agent's proposal."""
        return actions.changes_between(self.page.first, self.page.card) if self.page.proposal.number > 1 else []

    @cached_property
    def beyond(self) -> Sequence[dict[str, Any]]:
        """List people's edits in the state that no action shows."""
        page = self.page
        if not edit_state.beyond(page.card, page.proposal.state_patch):
            return []
        after = patch.apply(page.proposal.state_patch, page.snapshot.state)
        return page.veil.rows(edit_state.rows_beyond(page.card, page.snapshot.state, after))

    @property
    def read_beyond(self) -> list[tuple[str, list[str]]]:
        """List the effects that read fields edited in that way: (name, fields)."""
        names = {json_pointer.tokens(row["pointer"])[0] for row in self.beyond}
        effects = [step for step in self.page.plan.steps if step.kind == "effect"]
        reads = {step.name: sorted(names.intersection(step.reads)) for step in effects}
        return [(name, fields) for name, fields in reads.items() if fields]

    @property
    def in_world(self) -> list[dict[str, Any]]:
        """List the changes in the world since the approval, where the gate asks again."""
        return preconditions.world_rows(self.page.card, of_world=True)

    @property
    def in_run(self) -> list[dict[str, Any]]:
        """List the changes in the run since the approval, where the gate asks again."""
        rows = preconditions.world_rows(self.page.card, of_world=False)
        return edit_state.hidden(rows, self.page.card, self.page.veil)
