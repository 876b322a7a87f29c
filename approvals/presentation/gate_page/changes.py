"""How what a gate asks differs from before: what people changed in it, and what else changed since it was approved."""

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
    """What a gate's page says of changes."""

    page: AskedGate

    @cached_property
    def edits(self) -> Sequence[dict[str, Any]]:
        """List what people changed in the agent's proposal."""
        return actions.changes_between(self.page.first, self.page.card) if self.page.proposal.number > 1 else []

    @cached_property
    def beyond(self) -> Sequence[dict[str, Any]]:
        """List what people changed in the state that no action shows."""
        page = self.page
        if not edit_state.beyond(page.card, page.proposal.state_patch):
            return []
        after = patch.apply(page.proposal.state_patch, page.snapshot.state)
        return page.veil.rows(edit_state.rows_beyond(page.card, page.snapshot.state, after))

    @property
    def read_beyond(self) -> list[tuple[str, list[str]]]:
        """List the effects that read what was changed there: (name, fields)."""
        names = {json_pointer.tokens(row["pointer"])[0] for row in self.beyond}
        effects = [step for step in self.page.plan.steps if step.kind == "effect"]
        reads = {step.name: sorted(names.intersection(step.reads)) for step in effects}
        return [(name, fields) for name, fields in reads.items() if fields]

    @property
    def in_world(self) -> list[dict[str, Any]]:
        """List what changed in the world since the approval, where it is asked again."""
        return preconditions.world_rows(self.page.card, of_world=True)

    @property
    def in_run(self) -> list[dict[str, Any]]:
        """List what changed in the run since the approval, where it is asked again."""
        rows = preconditions.world_rows(self.page.card, of_world=False)
        return edit_state.hidden(rows, self.page.card, self.page.veil)
