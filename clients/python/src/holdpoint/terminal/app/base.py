"""The application: the connection to the server, the feed of events, and the base of its screens and dialogs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, DataTable, Footer, Static
from textual.worker import Worker

from ...drivers import Tasks
from ...errors import BadToken, HoldpointError, Problem
from ...sending import Op
from .. import reviewing
from ..command_line import NO_TOKEN
from ..credentials import Server
from ..lines import BOLD, GO, HOLD, PEN, QUOTE, SOFT, STOP, Line, Span, make_line, make_visible

T = TypeVar("T")
AGAIN = 2.0  # seconds until the feed is tried again
GONE = 410
NOW = "now"
STYLES = {BOLD: "bold", SOFT: "dim", GO: "green", STOP: "red", HOLD: "yellow", PEN: "blue", QUOTE: "italic"}


class Lines(Static):
    """A part of a screen that shows lines; Textual's own markup means nothing in them."""

    def __init__(self, lines: Iterable[Line] = (), *, id: str | None = None) -> None:
        super().__init__(draw_text(lines), markup=False, id=id)

    def show(self, lines: Iterable[Line]) -> None:
        self.update(draw_text(lines))


def draw_text(lines: Iterable[Line]) -> Text:
    """Return lines as one text."""
    text = Text()
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for span in line:
            text.append(span.text, STYLES.get(span.style))
    return text


class Screened:
    """Something that is shown over the application, and hears of events."""

    @property
    def review(self) -> ReviewApp:
        return cast(ReviewApp, cast(Screen[None], self).app)

    def heard(self, event: dict[str, Any]) -> None:
        """Take note of an event."""

    def connected(self) -> None:
        """Take note that the feed works, or does not."""

    def caught_up(self) -> None:
        """Read again: events may have been missed."""


class ReviewScreen(Screened, Screen[None]):
    """A whole screen, which is read again as things happen: once at a time, and once more where more happened."""

    def __init__(self) -> None:
        super().__init__()
        self.stale = self.reading = False

    def caught_up(self) -> None:
        self.stale = True
        if not self.reading:
            self.reading = True
            run_in_background(self, self._catch_up)

    async def _catch_up(self) -> None:
        try:
            while self.stale:
                self.stale = False
                await self.read()
        finally:
            self.reading = False

    async def read(self) -> None:
        """Read what the screen shows."""


class TableScreen(ReviewScreen):
    """A screen with one table, whose rows have keys."""

    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def compose(self) -> ComposeResult:
        yield Lines(id="head")
        yield make_table("table")
        yield Footer()

    @property
    def table(self) -> DataTable[Any]:
        return self.query_one(DataTable)

    @property
    def chosen(self) -> str:
        """Return the key of the highlighted row; "" where there is none."""
        if not self.table.row_count:
            return ""
        return str(self.table.coordinate_to_cell_key(self.table.cursor_coordinate).row_key.value)

    def on_mount(self) -> None:
        self.table.add_columns(*self.COLUMNS)
        self.table.focus()
        self.caught_up()

    async def read(self) -> None:
        chosen, number = self.chosen, self.table.cursor_row
        try:
            rows = await self.rows()
        except HoldpointError as error:
            self.fail(error)
            return
        self.table.clear()
        for key, cells in rows.items():
            texts = [Text(span.text, STYLES.get(span.style, ""), no_wrap=True, overflow="ellipsis") for span in cells]
            self.table.add_row(*texts, key=key)
        if rows:
            self.table.move_cursor(row=list(rows).index(chosen) if chosen in rows else min(number, len(rows) - 1))

    async def rows(self) -> dict[str, tuple[Span, ...]]:
        """Read the rows, by their keys. Raises HoldpointError."""
        raise NotImplementedError

    def fail(self, error: HoldpointError) -> None:
        """Show that the rows could not be read."""
        self.query_one("#head", Lines).show([make_line(Span(error, STOP))])

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        """Open what the highlighted row stands for."""

    def action_down(self) -> None:
        self.table.action_cursor_down()

    def action_up(self) -> None:
        self.table.action_cursor_up()


def make_table(id: str) -> DataTable[Any]:
    return DataTable(id=id, cursor_type="row", zebra_stripes=True)


class Dialog(Screened, ModalScreen[T]):
    """A dialog over a screen. Its buttons are named for its actions."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back")]

    def buttons(self, action: str, label: str, **more: Any) -> Horizontal:
        go_on = Button(label, id=action, **{"variant": "primary", **more})
        return Horizontal(Button("Back", id="cancel"), go_on, classes="buttons")

    async def on_button_pressed(self, pressed: Button.Pressed) -> None:
        await self.run_action(str(pressed.button.id))

    def action_cancel(self) -> None:
        """Leave without a result."""
        self.dismiss(None)

    def fail(self, error: Exception, *more: Line) -> None:
        """Show what is wrong: the sentence, and each place that it names."""
        lines = [make_line(Span(error.detail if isinstance(error, Problem) else error, STOP))]
        for fault in error.errors if isinstance(error, Problem) else ():
            lines.append(make_line("  ", Span(fault.get("parameter"), SOFT), " ", Span(fault.get("detail"))))
        faults = self.query_one("#faults", Lines)
        faults.show([*lines, *more])
        faults.scroll_visible(animate=False)


class ReviewApp(App[int]):
    """Reviewing in a terminal."""

    TITLE = "Holdpoint"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "style.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    BINDINGS: ClassVar[Any] = [("question_mark", "help", "Keys"), Binding("ctrl+q", "quit", "Quit", show=False)]

    def __init__(self, server: Server, first: Screen[None]) -> None:
        super().__init__()
        self.server, self.first = server, first
        self.api = server.api()
        self.tasks = Tasks(server.url, server.token)
        self.live = False

    def on_mount(self) -> None:
        self.push_screen(self.first)
        run_in_background(self, self._listen, group="feed")

    async def on_unmount(self) -> None:
        await self.tasks.close()

    async def ask(self, op: Op[T]) -> T:
        """Take an operation to its end. Raises HoldpointError."""
        return await self.tasks.run(op)

    def say(self, error: HoldpointError | str, *, severe: bool = True) -> None:
        """Show a sentence for some seconds."""
        self.notify(make_visible(error, lines=True), severity="error" if severe else "information", markup=False)

    def action_help(self) -> None:
        """Show the keys, or hide them."""
        if self.screen.query("HelpPanel"):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    @property
    def state(self) -> Line:
        """Return a line that says whose inbox it is, and whether it is live."""
        state = Span("● live", GO) if self.live else Span("○ no connection", STOP)
        return make_line(state, Span(f"  {self.server.user or 'your token'} at {self.server.url}", SOFT))

    async def _listen(self) -> None:
        """Tell the screens what happens, from the first moment on; go on from the cursor after an outage."""
        after = NOW
        while True:
            try:
                begins = after == NOW
                page = await self.ask(reviewing.events(self.api, after, wait=0.0 if begins else reviewing.WAIT))
            except BadToken:
                self.exit(NO_TOKEN, message="The token is not valid any more: run `holdpoint login`.")
                return
            except HoldpointError as error:
                if isinstance(error, Problem) and error.status == GONE:
                    after = NOW
                    continue
                self._connected(False)
                await asyncio.sleep(AGAIN)
                continue
            after = page["next"]
            self._connected(True)
            for screen in self._listening():
                if begins:
                    screen.caught_up()
                for event in page["items"]:
                    screen.heard(event)

    def _connected(self, live: bool) -> None:
        self.live = live
        for screen in self._listening():
            screen.connected()

    def _listening(self) -> Iterable[Screened]:
        return [screen for screen in self.screen_stack if isinstance(screen, Screened)]


def run_in_background(
    node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", exclusive: bool = False
) -> None:
    """Run a coroutine function beside a screen, for as long as that lives; `exclusive`: instead of the group's last."""

    async def run_work() -> None:
        with suppress(NoMatches):  # the screen went away while the server answered
            await work()

    _: Worker[None] = node.run_worker(run_work, group=group, exclusive=exclusive)
