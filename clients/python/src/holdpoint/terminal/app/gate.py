"""A gate: what it asks, what each choice would do, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Footer

from ... import json_pointer
from ...errors import HoldpointError
from .. import decisions, describe, reviewing
from ..commands.show import CHOICES, state_of
from ..lines import BOLD, GO, HOLD, STOP, Line, Span, make_line, make_span
from .base import ReviewScreen, run_in_background
from .deciding import Approve, Composer, Reject, Respond
from .drawing import Lines
from .each import Answer, Each
from .editing import Edit

COMPOSERS: Mapping[str, Callable[[dict[str, Any]], Composer]] = {
    "approve": Approve,
    "edit": Edit,
    "reject": Reject,
    "respond": Respond,
    "each": Each,
    "answer": Answer,
}


class GateScreen(ReviewScreen):
    """One gate. `verdict`: the decision to begin with, if the proposal is still the one that was `seen`."""

    BINDINGS: ClassVar[Any] = [
        ("a", "decide('approve')", "Approve"), ("e", "decide('edit')", "Edit"), ("r", "decide('reject')", "Reject"),
        ("s", "decide('respond')", "Respond"), ("p", "decide('each')", "Each"), ("w", "decide('answer')", "Answer"),
        ("u", "undo", "Undo your decision"),
        ("j", "scroll(3)", ""), ("k", "scroll(-3)", ""), ("escape,q", "app.pop_screen", "Back"),
    ]  # fmt: skip

    def __init__(self, number: int, verdict: str = "", seen: str = "") -> None:
        super().__init__()
        self.number, self.verdict, self.seen = number, verdict, seen
        self.gate: dict[str, Any] = {}
        self.choices: list[dict[str, Any]] = []

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Lines(id="banner")
        with VerticalScroll(id="whole"):
            yield Lines(id="card")
            yield Lines(id="choices")
        yield Footer()

    def on_mount(self) -> None:
        """Read it."""
        self.query_one("#whole").focus()
        self.caught_up()

    def heard(self, event: dict[str, Any]) -> None:
        """Read it anew where something happened to it, or to its run."""
        if event["subject"] == f"gate:{self.number}":
            self.caught_up()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what the gate takes."""
        if action == "undo":
            return bool(self.gate.get("settles_at"))
        if action != "decide" or not self.gate:
            return True
        return self.takes(str(parameters[0]))

    def takes(self, verdict: str) -> bool:
        """Tell whether the gate takes this verdict now."""
        card = self.gate["card"]
        if self.gate["status"] != "open":
            return False
        if card.get("question"):
            return verdict == "answer" or (verdict == "reject" and bool(card["question"].get("rejects")))
        if verdict == "each":
            return len(card.get("actions") or ()) > 1
        return verdict in ("approve", "reject") or decisions.takes(self.gate, verdict)

    async def read(self) -> None:
        """Read the gate, and what each choice would do."""
        before = self.gate
        try:
            self.gate = await self.review.ask(reviewing.gate(self.review.api, self.number))
            is_open = self.gate["status"] == "open"
            self.choices = await self.review.ask(reviewing.choices(self.review.api, self.number)) if is_open else []
            state = await self.review.ask(state_of(self.review.api, self.gate))
        except HoldpointError as error:
            self._tell([make_line(make_span(error, STOP))])
            return
        self.query_one("#card", Lines).show(describe.gate(self.gate, state))
        self.query_one("#choices", Lines).show(self._consequences())
        if news := told_of(before, self.gate):
            self._tell(news)
        self.refresh_bindings()
        if self.verdict:
            begun, self.verdict = self.verdict, ""
            if self.gate["digest"] == self.seen:
                self.action_decide(begun)
            else:
                self._tell([make_line(Span("You have not seen this proposal yet: read it first, then decide.", HOLD))])

    def _tell(self, news: list[Line]) -> None:
        banner = self.query_one("#banner", Lines)
        banner.display = True
        banner.show(news)

    def _consequences(self) -> list[Line]:
        lines: list[Line] = []
        for choice in self.choices:
            of = [Span(" "), make_span(choice["of"], BOLD)] if choice["choice"] == "back" else []
            head = Span(CHOICES.get(choice["choice"], f"If you answer {choice['of']}"), BOLD)
            lines += [
                make_line(),
                make_line(head, *of, ":"),
                *describe.impact(choice["impact"], missing=choice["left"]),
            ]
        return lines

    def action_scroll(self, lines: int) -> None:
        """Scroll."""
        self.query_one("#whole", VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_decide(self, verdict: str) -> None:
        """Begin a decision."""
        if self.gate and self.takes(verdict):
            self.app.push_screen(COMPOSERS[verdict](self.gate), self._decided)

    def action_undo(self) -> None:
        """Take the person's decision back."""
        run_in_background(self, self._undo, group="undo", exclusive=True)

    async def _undo(self) -> None:
        try:
            made = await self.review.ask(reviewing.undo(self.review.api, self.number))
            self.review.say(f"Undone: {made['verdict']}.", severe=False)
        except HoldpointError as error:
            self.review.say(error)
        self.caught_up()

    def _decided(self, decision: dict[str, Any] | None) -> None:
        if decision is not None:
            self.review.say(f"Recorded: {decision['verdict']}.", severe=False)
        self.caught_up()


def told_of(before: dict[str, Any], now: dict[str, Any]) -> list[Line]:
    """Describe what others did to the gate since it was read; nothing the first time."""
    if not before or before["version"] == now["version"]:
        return []
    if now["status"] != "open":
        outcome = now.get("outcome") or {}
        by = f" by {make_span(outcome['by']).text}" if outcome.get("by") else ""
        return [
            make_line(Span(f"This gate is closed: {make_span(outcome.get('kind') or now['status']).text}{by}.", HOLD))
        ]
    if before["digest"] == now["digest"]:
        return [make_line(Span("Somebody voted; see below.", GO))]
    was, new = decisions.arguments_of(before), decisions.arguments_of(now)
    return [make_line(Span("The proposal changed since you opened it:", HOLD)),
            *describe.changed(json_pointer.changes(was, new))]  # fmt: skip
