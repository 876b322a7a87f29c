"""Decisions: what is said, then what it would do, then the decision, bound to what was shown.

One is said of the gate as a whole, or action by action: new arguments, a verdict for each, the answer to a question.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, cast

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Footer, Input, RadioButton, RadioSet, Select, TextArea

from ...errors import HoldpointError, Problem
from .. import describe, forms, reviewing
from ..forms import Field
from ..lines import BOLD, HOLD, SOFT, STOP, Line, Span, make_line, make_visible
from ..reviewing import Json
from .base import Dialog, Lines, run_in_background

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
        with VerticalScroll(classes="dialog"):
            yield Lines([make_line(Span(f"{self.HEAD}  ", BOLD), describe.title(self.gate, SOFT))])
            yield from self.parts()
            yield Lines(id="faults")
            yield self.buttons("next", "See what it does")
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
        return reviewing.with_conditions(self.gate, [name for name, ticked in boxes.items() if ticked]) if boxes else {}

    @property
    def comment(self) -> str:
        return self.query_one("#comment", Input).value

    def on_input_submitted(self) -> None:
        self.action_next()

    def action_next(self) -> None:
        """Show what the decision would do."""
        run_in_background(self, self._next, group="next", exclusive=True)

    async def _next(self) -> None:
        try:
            body = self.body()
            preview = await self.review.ask(reviewing.preview(self.review.api, self.gate["id"], body))
        except (HoldpointError, ValueError) as error:
            self.fail(error)
            return
        self.query_one("#faults", Lines).show([])
        decision = await self.app.push_screen_wait(Confirm(self.gate, body, preview))
        if decision is not None:
            self.dismiss(decision)


class Confirm(Dialog[Json | None]):
    """Shows what a decision changes and does, and records it if it still does exactly that."""

    BINDINGS: ClassVar[Any] = [("escape", "cancel", "Back"), ("enter", "send", "Record the decision")]

    def __init__(self, gate: Json, body: Json, preview: Json) -> None:
        super().__init__()
        self.gate, self.decided, self.preview = gate, body, preview
        self.second_look = False
        self.sending = False

    def compose(self) -> ComposeResult:
        lines = [make_line(Span(f"Gate {self.gate['id']}  ", SOFT), describe.title(self.gate))]
        lines.append(make_line(Span("You decide: ", BOLD), Span(self.preview["verdict"], BOLD)))
        lines += describe.own_changes(reviewing.edits_of(self.gate, self.decided))
        if not self.preview["stands"] and self.preview["left"]:
            lines.append(make_line(Span("This makes a new proposal: others approve it again.", HOLD)))
        with VerticalScroll(classes="dialog", can_focus=False):
            yield Lines([*lines, *describe.effects(self.preview)])
            for effect in reviewing.repeats(self.preview):
                yield Checkbox(f"Do effect {effect} once more", name=str(effect), classes="repeat")
            yield Lines(id="faults")
            yield self.buttons("send", "Record the decision")
        yield Footer()

    def on_mount(self) -> None:
        """Begin where nothing is sent by accident: at the first box, or at the button."""
        boxes = self.query(Checkbox)
        (boxes.first() if boxes else self.query_one("#send", Button)).focus()

    def action_send(self) -> None:
        """Record the decision, once."""
        if not self.sending:
            self.sending = True
            run_in_background(self, self._send)

    async def _send(self) -> None:
        confirm = [int(box.name or 0) for box in self.query(Checkbox) if box.value]
        body = reviewing.bind(self.decided, self.preview, confirm) | {SECOND_LOOK: self.second_look}
        try:
            self.dismiss(await self.review.ask(reviewing.decide(self.review.api, self.gate["id"], body)))
        except HoldpointError as error:
            self.sending = False
            more = []
            if isinstance(error, Problem) and error.code == SECOND_LOOK:
                self.second_look = True
                more = [make_line(Span("Look once more; then record it again.", HOLD))]
            self.fail(error, *more)


class Approve(Composer):
    """Approves all that is asked."""

    HEAD = "Approve"

    def parts(self) -> Iterable[Widget]:
        yield from conditions_and_comment(self.gate)

    def on_mount(self) -> None:
        """Show at once what it does, where there is only a comment to fill in."""
        if not self.query(".condition"):
            self.action_next()

    def body(self) -> Json:
        return reviewing.approve(self.gate, self.comment) | self.conditions()


class Reject(Composer):
    """Rejects everything, and says what the run does then."""

    HEAD = "Reject"

    def parts(self) -> Iterable[Widget]:
        yield Lines([make_line("Your reason. The agent reads it if the run is sent back.")])
        yield TextArea(id="reason", tab_behavior="focus")
        usual = self.gate["card"].get("on_reject") or ""
        places = [RadioButton("Stop the run", name="")]  # never chosen for the reviewer
        for step in reversed(self.gate["card"].get("back_to") or ()):
            places.append(RadioButton(plain_label(f"Send it back to {step}"), value=step == usual, name=step))
        yield RadioSet(*places, id="then")

    def body(self) -> Json:
        chosen = self.query_one("#then", RadioSet).pressed_button
        if chosen is None:
            raise Missing("Choose what the run does then.")
        reason = self.query_one("#reason", TextArea).text.strip()
        return reviewing.reject(self.gate, reason, back_to=chosen.name or None)


class Respond(Composer):
    """Answers in the place of each action: it does not run, and the agent gets the answer."""

    HEAD = "Respond"

    def parts(self) -> Iterable[Widget]:
        for action in reviewing.actions_of(self.gate):
            what = f"  the agent gets {'your text' if reviewing.takes_text(action) else 'JSON'} instead"
            yield Lines([make_line(Span(action["title"] or action["id"], BOLD), Span(what, SOFT))])
            yield TextArea(name=action["id"], classes="response", tab_behavior="focus")

    def body(self) -> Json:
        boxes = {str(box.name): box.text for box in self.query(".response").results(TextArea)}
        actions = {}
        for action in reviewing.actions_of(self.gate):
            response = read_response(action, boxes[action["id"]])
            actions[action["id"]] = {"verdict": reviewing.RESPOND, "response": response}
        return reviewing.decide_actions(self.gate, actions)


def conditions_and_comment(gate: Json) -> Iterable[Widget]:
    """Yield a box for each condition that the reviewer may add or drop, and one for a comment."""
    for condition in reviewing.optional_conditions(gate):
        words = plain_label(f"Only if {describe.condition(condition)}")
        yield Checkbox(words, bool(condition.get("preselected")), name=condition["id"], classes="condition")
    yield Input(placeholder="A comment, if you like", id="comment")


def read_response(action: Json, typed: str) -> Any:
    """Return the response that was typed. Raises Missing."""
    if not typed.strip():
        raise Missing(f"Write a response to {action['id']}.")
    if reviewing.takes_text(action):
        return typed
    return read_json(typed, f"Write the response to {action['id']} as JSON.")


def read_json(typed: str, instead: str) -> Any:
    """Return the JSON that was typed. Raises Missing."""
    try:
        return json.loads(typed)
    except (ValueError, RecursionError):
        raise Missing(instead) from None


def plain_label(words: str) -> Content:
    """Return words for a widget's label, in which markup means nothing."""
    return Content(make_visible(words))


VERDICTS = {"approve": "Approve", "edit": "Edit", "reject": "Reject", "respond": "Respond"}


class ArgumentsForm(Vertical):
    """The form of one action's arguments, as the server draws it."""

    def __init__(self, action: Json) -> None:
        super().__init__(classes="form")
        self.action = action
        self.fields = forms.fields_of(action["form"], action["value"])

    def compose(self) -> Iterable[Widget]:
        for field in self.fields:
            yield Lines([label_of(field)])
            yield input_of(field)

    def arguments(self) -> Any:
        """Return the arguments with what was typed. Raises NotValid."""
        typed = {}
        for field, widget in zip(self.fields, self.query(".value"), strict=True):
            text = widget.text if isinstance(widget, TextArea) else cast("Input | Select[str]", widget).value
            typed[field.part["pointer"]] = str(text)
        return forms.filled(self.action["value"], self.fields, typed)


class Edit(Composer):
    """Approves with other arguments."""

    HEAD = "Edit"

    def parts(self) -> Iterable[Widget]:
        yield Lines([make_line(Span(self.gate["form"]["why_not"], STOP))])
        for action in self.gate["form"]["actions"]:
            if action["editable"]:
                yield Lines([make_line(Span(action["title"] or action["id"], BOLD), Span(f"  {action['id']}", SOFT))])
                yield ArgumentsForm(action)
        yield from conditions_and_comment(self.gate)

    def body(self) -> Json:
        new = [(form.action, form.arguments()) for form in self.query(ArgumentsForm)]
        changed = {action["id"]: value for action, value in new if value is not action["value"]}
        body = reviewing.edit(self.gate, changed, self.comment)
        if not reviewing.edits_of(self.gate, body):
            raise Missing("Nothing is changed yet.")
        return body | self.conditions()


def label_of(field: Field) -> Line:
    """Return a field's label, with what it takes."""
    part = field.part
    must = [Span("  must be filled in or changed", STOP)] if part["missing"] else []
    kind, _ = forms.TYPED.get(field.kind, (field.kind, ()))
    words = ", ".join(filter(None, [kind, part["unit"], "" if part["required"] else "may be left out", *part["hints"]]))
    return make_line(Span(part["label"], BOLD), Span(f"  {words}  {part['help']}", SOFT), *must)


def input_of(field: Field) -> Widget:
    """Return the widget in which a field is edited, or only shown."""
    closed = not field.part["open"]
    if field.text in field.choices:
        options = [(plain_label(choice["label"]), text) for text, choice in field.choices.items()]
        return Select(options, value=field.text, allow_blank=False, classes="value", disabled=closed)
    if field.kind == "long" or "\n" in field.text or len(field.text) > 60:
        return TextArea(field.text, classes="value", tab_behavior="focus", disabled=closed)
    return Input(field.text, classes="value", select_on_focus=False, disabled=closed)


class ActionVerdict(Vertical):
    """One action: its arguments, its verdict, and what that needs."""

    def __init__(self, action: Json, form: Json) -> None:
        super().__init__(classes="action")
        self.action, self.form = action, form

    def compose(self) -> Iterable[Widget]:
        yield Lines(describe.action(self.action))
        verdicts = self.action.get("verdicts") or ()
        options = [(label, verdict) for verdict, label in VERDICTS.items() if verdict in verdicts]
        yield Select(options, prompt="Choose a verdict", classes="verdict")  # never chosen for the reviewer
        yield Input(placeholder="The reason, or the answer", classes="words")
        if self.form["editable"]:
            yield ArgumentsForm(self.form)

    def on_mount(self) -> None:
        self.on_select_changed()

    def on_select_changed(self) -> None:
        """Show what the verdict needs, and nothing else."""
        self.query_one(".words", Input).display = self.verdict in ("reject", "respond")
        for form in self.query(ArgumentsForm):
            form.display = self.verdict == "edit"

    @property
    def verdict(self) -> str:
        """Return the chosen verdict; "" before one is."""
        chosen = self.query_one(".verdict", Select).selection
        return "" if chosen is None else str(chosen)

    def verdict_body(self) -> Json:
        """Return the verdict as the API takes it. Raises ValueError."""
        if not self.verdict:
            raise Missing(f"Choose a verdict for {self.action['title'] or self.action['id']}.")
        words = self.query_one(".words", Input).value
        body: Json = {"verdict": self.verdict}
        if self.verdict == "edit":
            body["arguments"] = self.query_one(ArgumentsForm).arguments()
        elif self.verdict == "reject":
            body["reason"] = words
        elif self.verdict == "respond":
            body["response"] = read_response(self.action, words)
        return body


class Each(Composer):
    """Decides each action by itself."""

    HEAD = "Each action"

    def parts(self) -> Iterable[Widget]:
        yield from map(ActionVerdict, reviewing.actions_of(self.gate), self.gate["form"]["actions"])
        yield from conditions_and_comment(self.gate)

    def body(self) -> Json:
        actions = {widget.action["id"]: widget.verdict_body() for widget in self.query(ActionVerdict)}
        if not actions or any(action["verdict"] != reviewing.REJECT for action in actions.values()):
            return reviewing.decide_actions(self.gate, actions, self.comment) | self.conditions()
        if not self.gate["card"].get("on_reject"):
            raise Missing("All are rejected: go back and press r, to say what the run does then.")
        return reviewing.decide_actions(self.gate, actions, self.comment, then=reviewing.BACK)


class Answer(Composer):
    """Answers the question of a gate that asks how to go on."""

    HEAD = "Answer"

    def parts(self) -> Iterable[Widget]:
        question = self.gate["card"]["question"]
        yield Lines([make_line(Span(question["text"], BOLD))])
        choices = [(choice.get("label") or choice["id"], choice["id"]) for choice in question["choices"]]
        yield RadioSet(*(RadioButton(plain_label(label), name=name) for label, name in choices), id="choice")
        yield Lines([make_line(Span("The value, as JSON, where the answer needs one", SOFT))])
        yield Input(id="value")

    def body(self) -> Json:
        chosen = self.query_one("#choice", RadioSet).pressed_button
        if chosen is None:
            raise Missing("Choose an answer.")
        typed = self.query_one("#value", Input).value
        value = read_json(typed, "Write the value as JSON.") if typed.strip() else None
        return reviewing.answer(self.gate, str(chosen.name), value)
