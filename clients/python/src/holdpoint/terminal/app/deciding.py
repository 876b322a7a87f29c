"""Decisions: what is said, then what it would do, then the decision, bound to what was shown."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Footer, Input, RadioButton, RadioSet, TextArea

from ...errors import HoldpointError, Problem
from .. import decisions, describe, reviewing
from ..lines import BOLD, HOLD, SOFT, STOP, Line, Span, make_line, make_span
from ..safe import make_visible
from .base import Dialog, run_in_background
from .drawing import Lines

Json = dict[str, Any]
SECOND_LOOK = "second_look"


class Missing(ValueError):
    """Something has to be filled in; the sentence says what."""


class Composer(Dialog[Json | None]):
    """Asks for one kind of decision. Its result is what the server recorded."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back"), ("ctrl+s", "next", "See what it does")]
    HEAD = ""

    def __init__(self, gate: Json) -> None:
        super().__init__()
        self.gate = gate

    def compose(self) -> ComposeResult:
        """Lay it out."""
        with VerticalScroll(classes="dialog"):
            yield Lines([make_line(Span(f"{self.HEAD}  ", BOLD), describe.title(self.gate, SOFT))])
            yield from self.parts()
            yield Lines(id="faults")
            with Horizontal(classes="buttons"):
                yield Button("Back", id="cancel")
                yield Button("See what it does", id="next", variant="primary")
        yield Footer()

    @abstractmethod
    def parts(self) -> Iterable[Widget]:
        """Yield what is to be filled in."""

    @abstractmethod
    def body(self) -> Json:
        """Return the decision. Raises ValueError."""

    def conditions(self) -> Json:
        """Return the conditions that are added and dropped."""
        boxes = {str(box.name): box.value for box in self.query(".condition").results(Checkbox)}
        return decisions.conditioned(self.gate, [name for name, ticked in boxes.items() if ticked]) if boxes else {}

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        """Go on, or leave."""
        if pressed.button.id == "cancel":
            self.action_cancel()
        else:
            self.action_next()

    def on_input_submitted(self) -> None:
        """Go on."""
        self.action_next()

    def action_next(self) -> None:
        """Show what the decision would do."""
        run_in_background(self, self._next, group="next", exclusive=True)

    async def _next(self) -> None:
        try:
            body = self.body()
            preview = await self.review.ask(reviewing.preview(self.review.api, self.gate["id"], body))
        except (HoldpointError, ValueError) as error:
            self.faults(faults_of(error))
            return
        self.faults([])
        made = await self.app.push_screen_wait(Confirm(self.gate, body, preview))
        if made is not None:
            self.dismiss(made)

    def faults(self, lines: list[Line]) -> None:
        """Show what is wrong."""
        shown = self.query_one("#faults", Lines)
        shown.show(lines)
        if lines:
            shown.scroll_visible(animate=False)


class Confirm(Dialog[Json | None]):
    """Shows what a decision changes and does, and records it if it still does exactly that."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back"), ("enter", "send", "Record the decision")]

    def __init__(self, gate: Json, body: Json, preview: Json) -> None:
        super().__init__()
        self.gate, self.decided, self.preview = gate, body, preview
        self.second_look = False
        self.sending = False

    def compose(self) -> ComposeResult:
        """Lay it out."""
        lines = [make_line(Span(f"Gate {self.gate['id']}  ", SOFT), describe.title(self.gate))]
        lines.append(make_line(Span("You decide: ", BOLD), make_span(self.preview["verdict"], BOLD)))
        if changes := decisions.edits_of(self.gate, self.decided):
            lines += [make_line("What you change:"), *describe.changed(changes)]
        if not self.preview["stands"] and self.preview["left"]:
            lines.append(make_line(Span("This makes a new proposal: others approve it again.", HOLD)))
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Lines(lines)
            yield Lines(
                [make_line("What it does:"), *describe.impact(self.preview["impact"], missing=self.preview["left"])]
            )
            for effect in decisions.repeats(self.preview):
                yield Checkbox(f"Do effect {effect} once more", name=str(effect), classes="repeat")
            yield Lines(id="faults")
            with Horizontal(classes="buttons"):
                yield Button("Back", id="cancel")
                yield Button("Record the decision", id="send", variant="primary")
        yield Footer()

    def on_mount(self) -> None:
        """Begin where nothing is sent by accident: at the first box, or at the button."""
        boxes = self.query(Checkbox)
        (boxes.first() if boxes else self.query_one("#send", Button)).focus()

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        """Send, or leave."""
        if pressed.button.id == "cancel":
            self.action_cancel()
        else:
            self.action_send()

    def action_send(self) -> None:
        """Record the decision, once."""
        if not self.sending:
            self.sending = True
            run_in_background(self, self._send)

    async def _send(self) -> None:
        confirm = [int(box.name or 0) for box in self.query(Checkbox) if box.value]
        body = decisions.confirming(self.decided, self.preview, confirm) | {SECOND_LOOK: self.second_look}
        try:
            made = await self.review.ask(reviewing.decide(self.review.api, self.gate["id"], body))
        except HoldpointError as error:
            self.sending = False
            more = []
            if isinstance(error, Problem) and error.code == SECOND_LOOK:
                self.second_look = True
                more = [make_line(Span("Look once more; then record it again.", HOLD))]
            self.query_one("#faults", Lines).show([*faults_of(error), *more])
            return
        self.dismiss(made)


class Approve(Composer):
    """Approves all that is asked."""

    HEAD = "Approve"

    def parts(self) -> Iterable[Widget]:
        """Yield the conditions and the comment."""
        yield from conditions_of(self.gate)
        yield Input(placeholder="A comment, if you like", id="comment")

    def on_mount(self) -> None:
        """Show at once what it does, where there is only a comment to fill in."""
        if not self.query(".condition"):
            self.action_next()

    def body(self) -> Json:
        """Return the decision."""
        return decisions.approve(self.gate, self.query_one("#comment", Input).value) | self.conditions()


class Reject(Composer):
    """Rejects everything, and says what the run does then."""

    HEAD = "Reject"

    def parts(self) -> Iterable[Widget]:
        """Yield the reason, and where the run goes."""
        yield Lines([make_line("Your reason. The agent reads it if the run is sent back.")])
        yield TextArea(id="reason", tab_behavior="focus")
        with_steps = RadioSet(*self._places(), id="then")
        yield with_steps

    def _places(self) -> Iterable[RadioButton]:
        usual = self.gate["card"].get("on_reject") or ""
        yield RadioButton("Stop the run", name="")  # never chosen for the reviewer
        for step in reversed(self.gate["card"].get("back_to") or ()):
            yield RadioButton(plain_label(f"Send it back to {step}"), value=step == usual, name=step)

    def body(self) -> Json:
        """Return the decision. Raises Missing."""
        chosen = self.query_one("#then", RadioSet).pressed_button
        if chosen is None:
            raise Missing("Choose what the run does then.")
        return decisions.reject(
            self.gate, self.query_one("#reason", TextArea).text.strip(), back_to=chosen.name or None
        )


class Respond(Composer):
    """Answers in the place of each action: it does not run, and the agent gets the answer."""

    HEAD = "Respond"

    def parts(self) -> Iterable[Widget]:
        """Yield an answer for each action."""
        for action in self.gate["card"]["actions"]:
            what = "your text" if takes_text(action) else "JSON"
            yield Lines(
                [
                    make_line(
                        make_span(action["title"] or action["id"], BOLD), Span(f"  the agent gets {what} instead", SOFT)
                    )
                ]
            )
            yield TextArea(name=action["id"], classes="response", tab_behavior="focus")

    def body(self) -> Json:
        """Return the decision. Raises ValueError."""
        boxes = {str(box.name): box.text for box in self.query(".response").results(TextArea)}
        actions = {}
        for action in self.gate["card"]["actions"]:
            answer = read_response(action, boxes[action["id"]])
            actions[action["id"]] = {"verdict": decisions.RESPOND, "response": answer}
        return decisions.decide_actions(self.gate, actions)


def conditions_of(gate: Json) -> Iterable[Widget]:
    """Yield a box for each condition that the reviewer may add or drop."""
    for condition in decisions.optional(gate):
        words = plain_label(f"Only if {describe.condition(condition)}")
        yield Checkbox(words, bool(condition.get("preselected")), name=condition["id"], classes="condition")


def takes_text(action: Json) -> bool:
    """Tell whether a response to the action is a text."""
    return (action.get("response") or {"type": "string"}).get("type") == "string"


def read_response(action: Json, typed: str) -> Any:
    """Return the response that was typed. Raises Missing."""
    if not typed.strip():
        raise Missing(f"Write a response to {action['id']}.")
    if takes_text(action):
        return typed
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        raise Missing(f"Write the response to {action['id']} as JSON.") from None


def plain_label(words: str) -> Content:
    """Return words for a widget's label, in which markup means nothing."""
    return Content(make_visible(words))


def faults_of(error: Exception) -> list[Line]:
    """Return an error as lines: the sentence, and each place that it names."""
    if not isinstance(error, Problem):
        return [make_line(make_span(error, STOP))]
    places = [
        make_line(Span("  "), make_span(place.get("parameter"), SOFT), " ", make_span(place.get("detail")))
        for place in error.errors
    ]
    return [make_line(make_span(error.detail, STOP)), *places]
