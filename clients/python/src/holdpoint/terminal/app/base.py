"""The application: the connection to the server, the feed of events, and the base of its screens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar, cast

from textual.app import App
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.worker import Worker

from ...drivers import Tasks
from ...errors import BadToken, HoldpointError, Problem
from ...exchange import Op
from .. import reviewing
from ..credentials import Server
from ..exits import NO_TOKEN
from ..lines import Line, Span, make_line
from ..safe import make_visible

T = TypeVar("T")
AGAIN = 2.0  # seconds until the feed is tried again
GONE = 410
NOW = "now"


class Heard:
    """Something that hears of events."""

    def heard(self, event: dict[str, Any]) -> None:
        """Take note of an event."""

    def connected(self, live: bool) -> None:
        """Take note that the feed works, or does not."""

    def caught_up(self) -> None:
        """Read anew: events may have been missed."""


class ReviewScreen(Heard, Screen[None]):
    """A whole screen, which is read anew as things happen: once at a time, and once more where more happened."""

    def __init__(self) -> None:
        super().__init__()
        self.stale = self.reading = False

    def caught_up(self) -> None:
        """Read anew."""
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

    @property
    def review(self) -> ReviewApp:
        """Return the application."""
        return cast(ReviewApp, self.app)


class Dialog(Heard, ModalScreen[T]):
    """A dialog over a screen."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back")]

    @property
    def review(self) -> ReviewApp:
        """Return the application."""
        return cast(ReviewApp, self.app)

    def action_cancel(self) -> None:
        """Leave without a result."""
        self.dismiss(None)


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
        """Begin to listen, and show the first screen."""
        self.push_screen(self.first)
        run_in_background(self, self._listen, group="feed")

    async def on_unmount(self) -> None:
        """Close the connections."""
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
            screen.connected(live)

    def _listening(self) -> Iterable[Heard]:
        return [screen for screen in self.screen_stack if isinstance(screen, Heard)]


def run_in_background(
    node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", exclusive: bool = False
) -> None:
    """Run a coroutine function beside a screen, for as long as that lives; `exclusive`: instead of the group's last."""

    async def run_work() -> None:
        with suppress(NoMatches):  # the screen went away while the server answered
            await work()

    _: Worker[None] = node.run_worker(run_work, group=group, exclusive=exclusive)


def state_of(review: ReviewApp) -> Line:
    """Return a line that says whose inbox it is, and whether it is live."""
    who = review.server.user or "your token"
    state = Span("● live", "go") if review.live else Span("○ no connection", "stop")
    return make_line(state, Span(f"  {make_visible(who)} at {make_visible(review.server.url)}", "soft"))
