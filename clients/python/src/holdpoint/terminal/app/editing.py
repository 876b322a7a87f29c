"""Decisions that are filled in action by action: new arguments, a verdict for each, and the answer to a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    """The form of one action's arguments, made from their JSON Schema."""

    def __init__(self, action: Json) -> None:
        super().__init__(classes="form")
        self.action = action
        self.fields = forms.fields_of(action.get("arguments"), action.get("schema") or {})

    def compose(self) -> Iterable[Widget]:
        missing = self.action.get("missing") or ()
        for field in self.fields:
            yield Lines([label_of(field, needed=field.pointer in missing)])
            yield input_of(field)

    def arguments(self) -> Any:
        """Return the arguments with what was typed. Raises NotValid."""
        widgets = zip(self.fields, self.query(".value"), strict=True)
        typed = {field.pointer: typed_text(widget, field) for field, widget in widgets}
        return forms.filled(self.action.get("arguments"), self.fields, typed)


class Edit(Composer):
    """Approves with other arguments."""

    HEAD = "Edit"

    def parts(self) -> Iterable[Widget]:
        for action in filter(may_edit, reviewing.actions_of(self.gate)):
            yield Lines([make_line(Span(action["title"] or action["id"], BOLD), Span(f"  {action['id']}", SOFT))])
            yield ArgumentsForm(action)
        yield from conditions_and_comment(self.gate)

    def body(self) -> Json:
        new = {form.action["id"]: form.arguments() for form in self.query(ArgumentsForm)}
        now = reviewing.arguments_of(self.gate)
        changed = {name: arguments for name, arguments in new.items() if arguments is not now[name]}
        body = reviewing.edit(self.gate, changed, self.comment)
        if not reviewing.edits_of(self.gate, body):
            raise Missing("Nothing is changed yet.")
        return body | self.conditions()


def may_edit(action: Json) -> bool:
    """Tell whether the action's arguments may be edited."""
    return reviewing.EDIT in (action.get("verdicts") or ()) and action.get("arguments") is not None


def label_of(field: Field, *, needed: bool = False) -> Line:
    """Return a field's label, with what it takes."""
    must = [Span("  must be filled in or changed", STOP)] if needed else []
    optional = "" if field.required else ", may be left out"
    hint = f"  {field.hint}" if field.hint else ""
    return make_line(Span(field.label, BOLD), Span(f"  {field.kind}{optional}{hint}", SOFT), *must)


def input_of(field: Field) -> Widget:
    """Return the widget in which a field is edited."""
    if field.kind == forms.CHOICE and field.value in field.options:
        options = [(plain_label(option), number) for number, option in enumerate(field.options)]
        return Select(options, value=field.options.index(field.value), allow_blank=False, classes="value")
    if field.multiline:
        return TextArea(field.text, classes="value", tab_behavior="focus")
    return Input(field.text, classes="value", select_on_focus=False)


def typed_text(widget: Widget, field: Field) -> str:
    """Return what a widget holds, as the field reads it."""
    if isinstance(widget, Select):
        chosen = field.options[widget.value] if isinstance(widget.value, int) else field.value
        return forms.written(chosen, field.kind)
    return widget.text if isinstance(widget, TextArea) else widget.value if isinstance(widget, Input) else field.text


class ActionVerdict(Vertical):
    """One action: its arguments, its verdict, and what that needs."""

    def __init__(self, action: Json) -> None:
        super().__init__(classes="action")
        self.action = action

    def compose(self) -> Iterable[Widget]:
        yield Lines(describe.action(self.action))
        verdicts = self.action.get("verdicts") or ()
        options = [(label, verdict) for verdict, label in VERDICTS.items() if verdict in verdicts]
        yield Select(options, prompt="Choose a verdict", classes="verdict")  # never chosen for the reviewer
        yield Input(placeholder="The reason, or the answer", classes="words")
        if may_edit(self.action):
            yield ArgumentsForm(self.action)

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
        yield from map(ActionVerdict, reviewing.actions_of(self.gate))
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
