"""The saved state that a gate shows, and how the run came to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.functional import cached_property

from approvals.cards.quote import Quote, quoted
from approvals.english import count_of
from approvals.gates import reveal_secret
from approvals.presentation.drawing import gantt
from approvals.presentation.gate_facts import namesakes
from approvals.presentation.text import invisible, untrusted
from checkpoints.models import Checkpoint
from checkpoints.store import executions
from checkpoints.store.loading import CheckpointHeader

from .gate_form import GateForm

SECRETS = 100  # named on one page


@dataclass(frozen=True, kw_only=True)
class RunStepLine:
    """One step of the run so far, for the compact list."""

    saved: CheckpointHeader
    title: str
    words: str  # its kind, or how long it took


@dataclass
class ShownState:
    """The saved state of a gate, as its page shows it."""

    page: GateForm

    @cached_property
    def state(self) -> dict[str, Any]:
        """Return the state with its secrets masked."""
        shown: dict[str, Any] = self.page.veil.masked(self.page.gate.saved.state)
        return shown

    @cached_property
    def secrets(self) -> list[str]:
        """List the JSON Pointers of the secrets in the proposed state."""
        if not self.page.veil:
            return []
        state = reveal_secret.at_gate(self.page.gate, self.page.proposal)
        return list(islice(self.page.veil.places(state), SECRETS))

    @cached_property
    def may_reveal(self) -> bool:
        return reveal_secret.may(self.page.user, self.page.gate.team_id)

    @cached_property
    def steps(self) -> list[RunStepLine]:
        """List the steps on the path that led here, oldest first. A run's first checkpoint is its input."""
        path = self.page.future.history.places if self.page.open else ()
        if not path or path[-1].id != self.page.gate.checkpoint:
            path = executions.path(self.page.gate.checkpoint)
        title = self.page.plan.title_of
        own = [place for place in path if place.run_id == self.page.gate.run_id]
        took = {at.id: at.took_us / 1e6 for at in own if at.kind == Checkpoint.Kind.STEP}
        words = {at: f"{span:.1f} s" if span >= 0.05 else f"{span * 1000:.0f} ms" for at, span in took.items()}
        return [RunStepLine(saved=at, title=title(at.step or at.kind), words=words.get(at.id, at.kind)) for at in own]

    @property
    def sources(self) -> dict[str, str]:
        """Return field -> words for the step that wrote it: the last one on the path that does so by its plan."""
        known = {step.name: step for step in self.page.plan.steps}
        ran = [known[line.saved.step] for line in self.steps if line.saved.step in known]
        return {name: f"from “{step.title}”" for step in ran for name in step.writes}

    @property
    def unfolded(self) -> list[str]:
        """List the fields that the actions are about."""
        return [action.pointer.split("/")[1] for action in self.page.card.actions if action.pointer.count("/") > 0]

    @property
    def quotes(self) -> list[tuple[Quote, str, str]]:
        """List (quote, its text in the state that the gate shows, mark of an author called as a person here)."""
        if not self.page.card.quotes:
            return []
        found = quoted(self.page.card.quotes, self.state)
        named = namesakes.namesakes_of(self.page.gate, found)
        mark = self.page.provenance.namesake
        return [(quote, text, mark(named.get(at, ""))) for at, (quote, text) in enumerate(found)]

    @cached_property
    def charts(self) -> gantt.CardCharts:
        """Return the card's drawings, from the state that the gate shows."""
        return gantt.charts(self.page.card, self.state)

    @cached_property
    def hidden(self) -> list[tuple[str, str]]:
        """List (icon, sentence) about hidden parts of the state's texts, found without trusting the agent."""
        asked = [each.masked for each in self.page.card.actions]
        conditions = [each.to_json() for each in self.page.card.preconditions]
        values = {**self.state, "the gate": asked, "the safety checks": conditions}
        deserts: dict[str, int] = {}
        ghosts: dict[str, int] = {}
        said: list[tuple[str, str]] = []
        for name, value in values.items():
            for characters, lines in map(invisible.badge_count, _texts(value)):
                if lines:
                    deserts[name] = max(lines, deserts.get(name, 0))
                if characters:
                    ghosts[name] = characters + ghosts.get(name, 0)
        if deserts:
            where, blank = _named(deserts), count_of(max(deserts.values()), "blank line")
            said.append(("fold", f"A text in {where} hides what follows behind {blank}"))
        if ghosts:
            said.append(("hidden", f"{count_of(max(ghosts.values()), 'character')} in {_named(ghosts)} cannot be seen"))
        return said


def _named(fields: Iterable[str]) -> str:
    return ", ".join(untrusted.plain(name, limit=40) for name in fields)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for inner in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(inner)
