"""The inbox: the open gates, the most urgent first, and beside them what the highlighted one asks."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import DataTable, Footer

from ...errors import HoldpointError
from .. import describe, reviewing
from ..lines import BOLD, SOFT, Span, make_line, make_span
from ..safe import one_line
from .base import ReviewScreen, run_in_background, state_of
from .drawing import Lines, draw_cell
from .gate import GateScreen
from .runs import RunsScreen

RISKS = ("critical", "high", "medium", "low")
FAR = "9999"


class InboxScreen(ReviewScreen):
    """The inbox."""

    BINDINGS: ClassVar[Any] = [
        ("j", "down", "Down"), ("k", "up", "Up"), ("enter", "open", "Open"), ("a", "decide('approve')", "Approve"),
        ("e", "decide('edit')", "Edit"), ("r", "decide('reject')", "Reject"), ("s", "decide('respond')", "Respond"),
        ("p", "decide('each')", "Each"), ("g", "runs", "Runs"), ("q", "app.quit", "Quit"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, dict[str, Any]] = {}
        self.looked_at: dict[str, Any] = {}  # the gate whose card is shown

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Lines(id="head")
        with Horizontal():
            table: DataTable[Any] = DataTable(id="gates", cursor_type="row", zebra_stripes=True)
            yield table
            with VerticalScroll(id="preview", can_focus=False):
                yield Lines(id="card")
        yield Footer()

    def on_mount(self) -> None:
        """Make the columns, and read the gates."""
        self.table.add_columns("Gate", "Risk", "What is asked", "Due", "Open", "Agent")
        self.table.focus()
        self.caught_up()

    @property
    def table(self) -> DataTable[Any]:
        """Return the list."""
        return self.query_one("#gates", DataTable)

    @property
    def chosen(self) -> str:
        """Return the number of the highlighted gate; "" where there is none."""
        if not self.table.row_count:
            return ""
        return str(self.table.coordinate_to_cell_key(self.table.cursor_coordinate).row_key.value)

    def heard(self, event: dict[str, Any]) -> None:
        """Read the gates anew where one opened, changed or closed."""
        if str(event["kind"]).startswith("gate."):
            self.caught_up()

    def connected(self, live: bool) -> None:
        """Say so."""
        self._head()

    def on_screen_resume(self) -> None:
        """Read them after a gate was looked at."""
        if self.is_mounted:
            self.caught_up()

    async def read(self) -> None:
        """Read the gates."""
        try:
            found = await self.review.ask(reviewing.gates(self.review.api))
        except HoldpointError as error:
            self.review.say(error)
            return
        found.sort(key=lambda gate: (gate["deadline"] or FAR, RISKS.index(gate["risk"]), gate["id"]))
        at, row = self.chosen, self.table.cursor_row
        self.gates = {str(gate["id"]): gate for gate in found}
        self.table.clear()
        for number, gate in self.gates.items():
            title = describe.title(gate)
            due = describe.ago(gate["deadline"]) if gate["deadline"] else ""
            cells = (
                Span(number), describe.risk(gate), Span(one_line(title.text, 40), title.style), Span(due),
                Span(describe.ago(gate["opened_at"]), SOFT), Span(one_line(gate["agent"], 14), SOFT),
            )  # fmt: skip
            self.table.add_row(*map(draw_cell, cells), key=number)
        if self.gates:
            self.table.move_cursor(row=list(self.gates).index(at) if at in self.gates else min(row, len(found) - 1))
        self._head()
        self._preview()

    def _head(self) -> None:
        count = len(self.gates)
        words = "1 gate is open" if count == 1 else f"{count} gates are open" if count else "No gate is open"
        self.query_one("#head", Lines).show(
            [make_line(Span("Holdpoint  ", BOLD), f"{words}   ", *state_of(self.review))]
        )

    def on_data_table_row_highlighted(self) -> None:
        """Show what it asks."""
        self._preview()

    def on_data_table_row_selected(self) -> None:
        """Open it."""
        self.action_open()

    def _preview(self) -> None:
        if not self.chosen:
            self.query_one("#card", Lines).show([])
            return
        run_in_background(self, partial(self._look, int(self.chosen)), group="preview", exclusive=True)

    async def _look(self, number: int) -> None:
        try:
            found = await self.review.ask(reviewing.gate(self.review.api, number))
        except HoldpointError as error:
            self.query_one("#card", Lines).show([make_line(make_span(error))])
            return
        self.query_one("#card", Lines).show(describe.gate(found))
        self.looked_at = found

    def action_down(self) -> None:
        """Go to the next gate."""
        self.table.action_cursor_down()

    def action_up(self) -> None:
        """Go to the gate before."""
        self.table.action_cursor_up()

    def action_open(self) -> None:
        """Open the gate."""
        self.action_decide("")

    def action_decide(self, verdict: str) -> None:
        """Open the gate, and begin a decision on what is shown of it here."""
        if self.chosen:
            seen = self.looked_at["digest"] if str(self.looked_at.get("id")) == self.chosen else ""
            self.app.push_screen(GateScreen(int(self.chosen), verdict, seen))

    def action_runs(self) -> None:
        """Show the runs."""
        self.app.push_screen(RunsScreen())
