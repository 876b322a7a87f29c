"""`holdpoint inbox`, live, by the keyboard: the open gates, the most urgent first, and each gate with its decision."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Footer

from ... import json_pointer
from ...errors import HoldpointError
from .. import credentials, describe, reviewing
from ..command_line import DONE, make_parser, parse_and_run
from ..lines import BOLD, GO, HOLD, SOFT, STOP, Line, Span, make_line, one_line
from ..reviewing import Json
from .base import Lines, ReviewApp, ReviewScreen, TableScreen, make_table, run_in_background
from .deciding import Answer, Approve, Composer, Each, Edit, Reject, Respond
from .runs import RunsScreen

RISKS = ("critical", "high", "medium", "low")
FAR = "9999"
COMPOSERS: Mapping[str, Callable[[Json], Composer]] = {
    "approve": Approve, "edit": Edit, "reject": Reject, "respond": Respond, "each": Each, "answer": Answer,
}  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    parser = make_parser("inbox", "Review in the terminal: the live inbox, gates, decisions, runs.")
    return parse_and_run(_open, parser, arguments)


def _open(given: argparse.Namespace) -> int:
    code = ReviewApp(credentials.server(given.server), InboxScreen()).run()
    return DONE if code is None else code


class InboxScreen(TableScreen):
    """The open gates, and beside them what the highlighted one asks."""

    BINDINGS: ClassVar[Any] = [
        ("j", "down", "Down"), ("k", "up", "Up"), ("enter", "open", "Open"), ("a", "decide('approve')", "Approve"),
        ("e", "decide('edit')", "Edit"), ("r", "decide('reject')", "Reject"), ("s", "decide('respond')", "Respond"),
        ("p", "decide('each')", "Each"), ("g", "runs", "Runs"), ("q", "app.quit", "Quit"),
    ]  # fmt: skip
    COLUMNS = ("Gate", "Risk", "What is asked", "Due", "Open", "Agent")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.looked_at: Json = {}  # the gate whose card is shown

    def compose(self) -> ComposeResult:
        yield Lines(id="head")
        with Horizontal():
            yield make_table("gates")
            with VerticalScroll(id="preview", can_focus=False):
                yield Lines(id="card")
        yield Footer()

    def heard(self, event: Json) -> None:
        """Read the gates again where one opened, changed or closed."""
        if str(event["kind"]).startswith("gate."):
            self.caught_up()

    def connected(self) -> None:
        count = self.count
        words = "1 gate is open" if count == 1 else f"{count} gates are open" if count else "No gate is open"
        self.query_one("#head", Lines).show([make_line(Span("Holdpoint  ", BOLD), f"{words}   ", *self.review.state)])

    def on_screen_resume(self) -> None:
        """Read them after a gate was looked at."""
        if self.is_mounted:
            self.caught_up()

    async def read(self) -> None:
        await super().read()
        self.connected()
        self._preview()

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        gates = await self.review.ask(reviewing.gates(self.review.api))
        gates.sort(key=lambda gate: (gate["deadline"] or FAR, RISKS.index(gate["risk"]), gate["id"]))
        self.count = len(gates)
        return {str(gate["id"]): _gate_cells(gate) for gate in gates}

    def fail(self, error: HoldpointError) -> None:
        self.review.say(error)

    def on_data_table_row_highlighted(self) -> None:
        self._preview()

    def _preview(self) -> None:
        if self.chosen:
            run_in_background(self, partial(self._look, int(self.chosen)), group="preview", exclusive=True)
        else:
            self.query_one("#card", Lines).show([])

    async def _look(self, number: int) -> None:
        try:
            gate = await self.review.ask(reviewing.gate(self.review.api, number))
        except HoldpointError as error:
            self.query_one("#card", Lines).show([make_line(Span(error))])
            return
        self.query_one("#card", Lines).show(describe.gate(gate))
        self.looked_at = gate

    def action_open(self) -> None:
        self.action_decide("")

    def action_decide(self, verdict: str) -> None:
        """Open the gate, and begin a decision on what is shown of it here."""
        if self.chosen:
            seen = self.looked_at["digest"] if str(self.looked_at.get("id")) == self.chosen else ""
            self.app.push_screen(GateScreen(int(self.chosen), verdict, seen))

    def action_runs(self) -> None:
        self.app.push_screen(RunsScreen())


def _gate_cells(gate: Json) -> tuple[Span, ...]:
    title = describe.title(gate)
    return (
        Span(gate["id"]), describe.risk(gate), Span(one_line(title.text, 40), title.style),
        Span(describe.ago(gate["deadline"]) if gate["deadline"] else ""),
        Span(describe.ago(gate["opened_at"]), SOFT), Span(one_line(gate["agent"], 14), SOFT),
    )  # fmt: skip


class GateScreen(ReviewScreen):
    """A gate: what it asks, what each choice would do, and the decision.

    `verdict`: the decision to begin with, if the proposal is still the one that was `seen`.
    """

    BINDINGS: ClassVar[Any] = [
        ("a", "decide('approve')", "Approve"), ("e", "decide('edit')", "Edit"), ("r", "decide('reject')", "Reject"),
        ("s", "decide('respond')", "Respond"), ("p", "decide('each')", "Each"), ("w", "decide('answer')", "Answer"),
        ("u", "undo", "Undo your decision"),
        ("j", "scroll(3)", ""), ("k", "scroll(-3)", ""), ("escape,q", "app.pop_screen", "Back"),
    ]  # fmt: skip

    def __init__(self, number: int, verdict: str = "", seen: str = "") -> None:
        super().__init__()
        self.number, self.verdict, self.seen = number, verdict, seen
        self.gate: Json = {}

    def compose(self) -> ComposeResult:
        yield Lines(id="banner")
        with VerticalScroll(id="whole"):
            yield Lines(id="card")
            yield Lines(id="choices")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#whole").focus()
        self.caught_up()

    def heard(self, event: Json) -> None:
        """Read it again where something happened to it."""
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
        question, actions = self.gate["card"].get("question"), reviewing.actions_of(self.gate)
        if self.gate["status"] != "open":
            return False
        if question:
            return verdict == "answer" or (verdict == "reject" and bool(question.get("rejects")))
        if verdict == "each":
            return len(actions) > 1
        return verdict in ("approve", "reject") or any(verdict in (action.get("verdicts") or ()) for action in actions)

    async def read(self) -> None:
        before = self.gate
        try:
            self.gate = await self.review.ask(reviewing.gate(self.review.api, self.number))
            self.gate["form"] = await self.review.ask(reviewing.form(self.review.api, self.number))
            choices = await self.review.ask(reviewing.choices(self.review.api, self.gate))
            state = await self.review.ask(reviewing.quoted_state(self.review.api, self.gate))
        except HoldpointError as error:
            self._announce([make_line(Span(error, STOP))])
            return
        self.query_one("#card", Lines).show(describe.gate(self.gate, state))
        self.query_one("#choices", Lines).show(describe.choices(choices))
        if news := news_since(before, self.gate):
            self._announce(news)
        self.refresh_bindings()
        if self.verdict:
            verdict, self.verdict = self.verdict, ""
            if self.gate["digest"] == self.seen:
                self.action_decide(verdict)
            else:
                words = "You have not seen this proposal yet: read it first, then decide."
                self._announce([make_line(Span(words, HOLD))])

    def _announce(self, news: list[Line]) -> None:
        banner = self.query_one("#banner", Lines)
        banner.display = True
        banner.show(news)

    def action_scroll(self, lines: int) -> None:
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
            undone = await self.review.ask(reviewing.undo(self.review.api, self.number))
            self.review.say(f"Undone: {undone['verdict']}.", severe=False)
        except HoldpointError as error:
            self.review.say(error)
        self.caught_up()

    def _decided(self, decision: Json | None) -> None:
        if decision is not None:
            self.review.say(f"Recorded: {decision['verdict']}.", severe=False)
        self.caught_up()


def news_since(before: Json, now: Json) -> list[Line]:
    """Describe what others did to the gate since it was read; nothing the first time."""
    if not before or before["version"] == now["version"]:
        return []
    if now["status"] != "open":
        outcome = now.get("outcome") or {}
        by = f" by {outcome['by']}" if outcome.get("by") else ""
        return [make_line(Span(f"This gate is closed: {outcome.get('kind') or now['status']}{by}.", HOLD))]
    if before["digest"] == now["digest"]:
        return [make_line(Span("Somebody voted; see below.", GO))]
    changes = json_pointer.changes(reviewing.arguments_of(before), reviewing.arguments_of(now))
    return [make_line(Span("The proposal changed since you opened it:", HOLD)), *describe.changed(changes)]
