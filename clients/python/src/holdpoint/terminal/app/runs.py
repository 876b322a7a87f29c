"""Runs, the checkpoints of one, and rewinding it: first what the rewind would do, then the order."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Button, Checkbox, DataTable, Footer, TextArea

from ...errors import HoldpointError, Problem
from .. import describe, reviewing
from ..commands.runs import run_lines
from ..lines import BOLD, SOFT, STOP, Span, make_line, make_span
from ..safe import one_line
from .base import Dialog, ReviewScreen, run_in_background
from .deciding import faults_of
from .drawing import Lines, draw_cell


class TableScreen(ReviewScreen):
    """A screen with one table."""

    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Lines(id="head")
        table: DataTable[Any] = DataTable(id="table", cursor_type="row", zebra_stripes=True)
        yield table
        yield Footer()

    @property
    def table(self) -> DataTable[Any]:
        """Return the table."""
        return self.query_one("#table", DataTable)

    @property
    def chosen(self) -> str:
        """Return the key of the highlighted row; "" where there is none."""
        if not self.table.row_count:
            return ""
        return str(self.table.coordinate_to_cell_key(self.table.cursor_coordinate).row_key.value)

    def on_mount(self) -> None:
        """Make the columns, and read."""
        self.table.add_columns(*self.COLUMNS)
        self.table.focus()
        self.caught_up()

    async def read(self) -> None:
        """Read the rows."""
        at, row = self.chosen, self.table.cursor_row
        try:
            rows = await self.rows()
        except HoldpointError as error:
            self.query_one("#head", Lines).show([make_line(make_span(error, STOP))])
            return
        self.table.clear()
        for key, cells in rows.items():
            self.table.add_row(*map(draw_cell, cells), key=key)
        if rows:
            self.table.move_cursor(row=list(rows).index(at) if at in rows else min(row, len(rows) - 1))

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the rows, by their keys. Raises HoldpointError."""
        raise NotImplementedError

    def action_down(self) -> None:
        """Go down."""
        self.table.action_cursor_down()

    def action_up(self) -> None:
        """Go up."""
        self.table.action_cursor_up()


class RunsScreen(TableScreen):
    """The newest runs."""

    BINDINGS: ClassVar[Any] = [("j", "down", "Down"), ("k", "up", "Up"), ("enter", "open", "Open"),
                               ("escape,q", "app.pop_screen", "Back")]  # fmt: skip
    COLUMNS = ("Run", "Status", "What it is about", "Agent", "Next", "Started")

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the runs."""
        found = await self.review.ask(reviewing.runs(self.review.api))
        self.query_one("#head", Lines).show([make_line(Span(f"{len(found)} newest runs", BOLD))])
        return {str(run["id"]): _run_cells(run) for run in found}

    def heard(self, event: dict[str, Any]) -> None:
        """Read anew where a run moved."""
        if str(event["kind"]).startswith("run."):
            self.caught_up()

    def on_data_table_row_selected(self) -> None:
        """Open the run."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run."""
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
        self.run: dict[str, Any] = {}

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the run and its checkpoints."""
        self.run = await self.review.ask(reviewing.run(self.review.api, self.number))
        found = await self.review.ask(reviewing.checkpoints(self.review.api, self.number))
        self.query_one("#head", Lines).show(run_lines(self.run))
        return {
            str(checkpoint["seq"]): (
                Span(str(checkpoint["seq"]), BOLD if checkpoint["seq"] == self.run["seq"] else ""),
                make_span(describe.made_by(checkpoint)), make_span(checkpoint["next_step"] or "the end", SOFT),
                Span(f"{describe.ago(checkpoint['at'])} ago", SOFT),
            )
            for checkpoint in found
        }  # fmt: skip

    def heard(self, event: dict[str, Any]) -> None:
        """Read anew where something happened in it."""
        if event["run"] == f"run:{self.number}" or event["subject"] == f"run:{self.number}":
            self.caught_up()

    def action_rewind(self) -> None:
        """Show what a rewind to this checkpoint would do."""
        if self.chosen:
            self.app.push_screen(Rewind(self.run, int(self.chosen)), lambda _: self.caught_up())


class Rewind(Dialog[bool | None]):
    """Shows what a rewind would do, and orders exactly that."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back"), ("ctrl+s", "send", "Rewind")]

    def __init__(self, run: dict[str, Any], to: int) -> None:
        super().__init__()
        self.run, self.to = run, to
        self.impact: dict[str, Any] = {}

    def compose(self) -> ComposeResult:
        """Lay it out."""
        with VerticalScroll(classes="dialog"):
            yield Lines([make_line(Span(f"Rewind run {self.run['id']} to checkpoint {self.to}", BOLD))])
            yield Lines(id="impact")
            yield Lines([make_line(Span("What the agent should do differently", SOFT))])
            yield TextArea(id="feedback", tab_behavior="focus")
            yield Checkbox("Repeat what cannot be undone", id="confirm")
            yield Lines(id="faults")
            with Horizontal(classes="buttons"):
                yield Button("Back", id="cancel")
                yield Button("Rewind", id="send", variant="error", disabled=True)
        yield Footer()

    def on_mount(self) -> None:
        """Ask what it would do."""
        self.query_one("#confirm", Checkbox).display = False
        self._look_again()

    def on_text_area_changed(self) -> None:
        """Ask again: a step may read the feedback."""
        self._look_again()

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        """Order it, or leave."""
        if pressed.button.id == "cancel":
            self.action_cancel()
        else:
            self.action_send()

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
            found = await self.review.ask(reviewing.rewind_impact(self.review.api, self.run["id"], self.to, feedback))
        except HoldpointError as error:
            self.query_one("#faults", Lines).show(faults_of(error))
            return
        self._show(found)

    def _show(self, impact: dict[str, Any]) -> None:
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
            self.query_one("#faults", Lines).show(faults_of(error))
            if isinstance(error, Problem) and error.code == "impact_changed":
                self._look_again()
            return
        self.review.say(f"Run {self.run['id']} was rewound to checkpoint {self.to}.", severe=False)
        self.dismiss(True)


def _run_cells(run: dict[str, Any]) -> tuple[Span, ...]:
    return (
        Span(str(run["id"])), make_span(run["status"], describe.STATUS.get(run["status"], BOLD)),
        Span(one_line(run["title"], 46)), Span(one_line(run["agent"], 16), SOFT),
        Span(one_line(run["next_step"], 16), SOFT), Span(f"{describe.ago(run['created_at'])} ago", SOFT),
    )  # fmt: skip
