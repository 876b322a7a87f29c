"""Decisions that are filled in action by action: new arguments, a verdict for each, and the answer to a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, RadioButton, RadioSet, Select, TextArea

from .. import describe, forms, reviewing
from ..forms import Field
from ..lines import BOLD, SOFT, STOP, Line, Span, make_line
from ..reviewing import Json
from .base import Lines
from .deciding import Composer, Missing, conditions_and_comment, plain_label, read_json, read_response

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
        widgets = zip(self.fields, self.query(".value"), strict=True)
        typed = {field.part["pointer"]: typed_text(widget) for field, widget in widgets}
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
    takes = [kind, part["unit"], "" if part["required"] else "may be left out", *part["hints"]]
    words = ", ".join(filter(None, takes))
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


def typed_text(widget: Widget) -> str:
    """Return what a widget holds, as the field reads it."""
    return widget.text if isinstance(widget, TextArea) else str(cast("Input | Select[str]", widget).value)


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
