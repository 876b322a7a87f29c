"""Runs, the checkpoints of one, and rewinding it: first what the rewind would do, then the order."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Button, Checkbox, Footer, TextArea

from ...errors import HoldpointError, Problem
from .. import describe, reviewing
from ..lines import BOLD, SOFT, Span, make_line, one_line
from ..reviewing import Json
from .base import Dialog, Lines, TableScreen, run_in_background


class RunsScreen(TableScreen):
    """The newest runs."""

    BINDINGS: ClassVar[Any] = [("j", "down", "Down"), ("k", "up", "Up"), ("enter", "open", "Open"),
                               ("escape,q", "app.pop_screen", "Back")]  # fmt: skip
    COLUMNS = ("Run", "Status", "What it is about", "Agent", "Next", "Started")

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the runs."""
        runs = await self.review.ask(reviewing.runs(self.review.api))
        self.query_one("#head", Lines).show([make_line(Span(f"{len(runs)} newest runs", BOLD))])
        return {str(run["id"]): _run_cells(run) for run in runs}

    def heard(self, event: Json) -> None:
        """Read again where a run moved."""
        if str(event["kind"]).startswith("run."):
            self.caught_up()

    def action_open(self) -> None:
        if self.chosen:
            self.app.push_screen(RunScreen(int(self.chosen)))


class RunScreen(TableScreen):
    """One run: its checkpoints, the newest first."""

    BINDINGS: ClassVar[Any] = [("j", "down", "Down"), ("k", "up", "Up"), ("w", "rewind", "Rewind to here"),
                               ("escape,q", "app.pop_screen", "Back")]  # fmt: skip
    COLUMNS = ("Checkpoint", "Made by", "Next", "When")

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.run: Json = {}

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the run and its checkpoints."""
        self.run = await self.review.ask(reviewing.run(self.review.api, self.number))
        checkpoints = await self.review.ask(reviewing.checkpoints(self.review.api, self.number))
        self.query_one("#head", Lines).show(describe.run(self.run))
        return {str(checkpoint["seq"]): self._checkpoint_cells(checkpoint) for checkpoint in checkpoints}

    def _checkpoint_cells(self, checkpoint: Json) -> tuple[Span, ...]:
        return (
            Span(checkpoint["seq"], BOLD if checkpoint["seq"] == self.run["seq"] else ""),
            Span(describe.made_by(checkpoint)), Span(checkpoint["next_step"] or "the end", SOFT),
            Span(f"{describe.ago(checkpoint['at'])} ago", SOFT),
        )  # fmt: skip

    def heard(self, event: Json) -> None:
        """Read again where something happened in it."""
        if event["run"] == f"run:{self.number}" or event["subject"] == f"run:{self.number}":
            self.caught_up()

    def action_rewind(self) -> None:
        """Show what a rewind to this checkpoint would do."""
        if self.chosen:
            self.app.push_screen(Rewind(self.run, int(self.chosen)), lambda _: self.caught_up())


class Rewind(Dialog[bool | None]):
    """Shows what a rewind would do, and orders exactly that."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back"), ("ctrl+s", "send", "Rewind")]

    def __init__(self, run: Json, to: int) -> None:
        super().__init__()
        self.run, self.to = run, to
        self.impact: Json = {}

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog"):
            yield Lines([make_line(Span(f"Rewind run {self.run['id']} to checkpoint {self.to}", BOLD))])
            yield Lines(id="impact")
            yield Lines([make_line(Span("What the agent should do differently", SOFT))])
            yield TextArea(id="feedback", tab_behavior="focus")
            yield Checkbox("Repeat what cannot be undone", id="confirm")
            yield Lines(id="faults")
            yield self.buttons("send", "Rewind", variant="error", disabled=True)
        yield Footer()

    def on_mount(self) -> None:
        """Ask what it would do."""
        self.query_one("#confirm", Checkbox).display = False
        self._look_again()

    def on_text_area_changed(self) -> None:
        """Ask again: a step may read the feedback."""
        self._look_again()

    def action_send(self) -> None:
        """Order what is shown."""
        if self.impact:
            run_in_background(self, self._send, group="send", exclusive=True)

    def _look_again(self) -> None:
        self.impact = {}
        self.query_one("#send", Button).disabled = True
        run_in_background(self, self._look, group="look", exclusive=True)

    async def _look(self) -> None:
        feedback = self.query_one("#feedback", TextArea).text
        try:
            impact = await self.review.ask(reviewing.rewind_impact(self.review.api, self.run["id"], self.to, feedback))
        except HoldpointError as error:
            self.fail(error)
            return
        self.impact = impact
        self.query_one("#impact", Lines).show([make_line("What it does:"), *describe.impact(impact)])
        self.query_one("#confirm", Checkbox).display = describe.repeats_for_good(impact)
        self.query_one("#send", Button).disabled = False

    async def _send(self) -> None:
        order = {
            "to": self.to, "feedback": self.query_one("#feedback", TextArea).text, "seen": self.impact["digest"],
            "confirm": self.query_one("#confirm", Checkbox).value,
        }  # fmt: skip
        try:
            await self.review.ask(reviewing.rewind(self.review.api, self.run["id"], order))
        except HoldpointError as error:
            self.fail(error)
            if isinstance(error, Problem) and error.code == "impact_changed":
                self._look_again()
            return
        self.review.say(f"Run {self.run['id']} was rewound to checkpoint {self.to}.", severe=False)
        self.dismiss(True)


def _run_cells(run: Json) -> tuple[Span, ...]:
    return (
        Span(run["id"]), Span(run["status"], describe.status_style(run)),
        Span(one_line(run["title"], 46)), Span(one_line(run["agent"], 16), SOFT),
        Span(one_line(run["next_step"], 16), SOFT), Span(f"{describe.ago(run['created_at'])} ago", SOFT),
    )  # fmt: skip
