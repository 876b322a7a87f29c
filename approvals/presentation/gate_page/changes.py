"""Lists the changes in what a gate asks: people's edits, and what else changed since an approval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import cached_property

from approvals.cards import binding
from approvals.decisions import edit_state, prepared_decision
from approvals.models import Gate, GateVisit, Proposal
from approvals.presentation.decision_form import actions, left_out
from checkpoints.values import json_pointer, patch

from .gate_form import GateForm

WORDS = ("title", "amount", "for_whom", "resource", "risk", "summary")  # of a card, beside its actions


@dataclass(frozen=True, kw_only=True)
class SinceLook:
    """The difference from what the reader saw last. `gate`: the earlier one at which that was; 0: this one."""

    at: datetime
    rows: Sequence[dict[str, Any]]
    gate: int = 0


def seen_before(visits: Sequence[GateVisit], gate: Gate) -> tuple[int, int, datetime] | None:
    """Return (gate, version, when) of what was seen last that is not what the gate asks now; None for nothing."""
    for visit in visits:
        own = visit.gate_id == gate.pk
        seen = visit.seen_before(gate.proposal) if own else (visit.proposal, visit.at)
        if seen is not None:
            return visit.gate_id, *seen
    return None


def _alike(edit: dict[str, Any], row: dict[str, Any]) -> bool:
    """Tell whether an edit of an action is shown as this row."""
    shown = ("pointer", "kind", "from", "before", "after")
    return row.get("of") == f"action:{edit['action']}" and [edit.get(n) for n in shown] == [row.get(n) for n in shown]


@dataclass
class ShownChanges:
    """The changes that a gate's page shows."""

    page: GateForm

    @property
    def edits(self) -> Sequence[dict[str, Any]]:
        """List people's edits in the agent's proposal, but for those that `since_look` shows."""
        shown = self.since_look.rows if self.since_look else ()
        return [row for row in self._edits if row not in shown]

    @cached_property
    def _edits(self) -> Sequence[dict[str, Any]]:
        """List people's edits in the agent's proposal, each with a box that takes it back, where it is one field."""
        page = self.page
        if page.proposal.number == 1:
            return []
        forms = {sheet.action.id: sheet.form for sheet in page.sheets if sheet.form}
        fields = {(name, each.pointer): each for name, form in forms.items() for each in form.fields}
        rows = actions.changes_between(page.gate.asked, page.card)
        posted = page.typed.posted
        return [
            left_out.boxed(row, fields.get((row["action"], row["place"])), row.get("before"), posted) for row in rows
        ]

    @cached_property
    def beyond(self) -> Sequence[dict[str, Any]]:
        """List people's edits in the state that no action shows."""
        page = self.page
        if not edit_state.beyond(page.card, page.proposal.state_patch):
            return []
        after = patch.apply(page.proposal.state_patch, page.gate.saved.state)
        return page.veil.rows(edit_state.rows_beyond(page.card, page.gate.saved.state, after))

    @property
    def read_beyond(self) -> list[tuple[str, list[str]]]:
        """List the effects that read fields edited in that way: (name, fields)."""
        names = {json_pointer.split_pointer(row["pointer"])[0] for row in self.beyond}
        effects = [step for step in self.page.plan.steps if step.kind == "effect"]
        reads = {step.name: sorted(names.intersection(step.reads)) for step in effects}
        return [(name, fields) for name, fields in reads.items() if fields]

    @cached_property
    def since_look(self) -> SinceLook | None:
        """Return what others changed in what is asked since the reader last looked; None where nothing is new."""
        page = self.page
        found = seen_before(page.read.visits, page.gate)
        if not page.open or found is None:
            return None
        gate, number, at = found
        if gate == page.gate.pk and page.proposal.by_id == page.user.pk:
            return None  # they made it themselves
        looked_at = Proposal.objects.filter(gate=gate, number=number).first()
        if looked_at is None:
            return None
        if gate == page.gate.pk:
            rows: list[dict[str, Any]] = prepared_decision.between(page.gate, looked_at, page.proposal)
        else:
            bodies = binding.body_rows(looked_at.content, page.proposal.content)
            before, now = (
                {name: getattr(card, name) for name in WORDS if getattr(card, name)}
                for card in (looked_at.card, page.card)
            )
            rows = [*patch.list_changes(before, now), *edit_state.hidden(bodies, page.card, page.veil)]
        named = [next((edit for edit in self._edits if _alike(edit, row)), row) for row in self._named(rows)]
        return SinceLook(at=at, rows=named, gate=gate if gate != page.gate.pk else 0) if rows else None

    def _named(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the rows, each with its action's id before its place where there are several."""
        if len(self.page.card.actions) < 2:
            return [dict(row) for row in rows]
        ids = [str(row.get("of", "")).partition(":")[2] for row in rows]
        places = [f"/{one}{row['pointer']}" if one else row["pointer"] for one, row in zip(ids, rows, strict=True)]
        return [{**row, "pointer": place} for row, place in zip(rows, places, strict=True)]

    @property
    def in_world(self) -> list[dict[str, Any]]:
        """List the changes in the world since the approval, where the gate asks again."""
        return [row for row in self._since_approval if row["of"] == "world"]

    @property
    def in_run(self) -> list[dict[str, Any]]:
        """List the changes in the run since the approval, where the gate asks again."""
        rows = [row for row in self._since_approval if row["of"] != "world"]
        return edit_state.hidden(rows, self.page.card, self.page.veil)

    @property
    def _since_approval(self) -> Sequence[dict[str, Any]]:
        rows: Sequence[dict[str, Any]] = (self.page.card.reopened or {}).get("changes", ())
        return rows
