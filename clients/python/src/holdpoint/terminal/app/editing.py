"""Edits of arguments, in forms made from each action's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Select, TextArea

from .. import decisions, forms
from ..forms import Field
from ..lines import BOLD, SOFT, Line, Span, make_line, make_span
from ..safe import make_visible
from .deciding import Composer, Json, Missing, conditions_of
from .drawing import Lines


class ArgumentsForm(Vertical):
    """The form of one action's arguments."""

    def __init__(self, action: Json) -> None:
        super().__init__(classes="form")
        self.action = action
        self.fields = forms.fields_of(action.get("arguments"), action.get("schema") or {})

    def compose(self) -> Iterable[Widget]:
        """Lay out a label and an input for each field."""
        missing = self.action.get("missing") or ()
        for field in self.fields:
            yield Lines([label_of(field, needed=field.pointer in missing)])
            yield input_of(field)

    def typed(self) -> dict[str, str]:
        """Return what is typed, by pointer."""
        return {field.pointer: _text(widget, field) for field, widget in zip(self.fields, self._inputs(), strict=True)}

    def arguments(self) -> Any:
        """Return the arguments with what was typed. Raises NotValid."""
        return forms.filled(self.action.get("arguments"), self.fields, self.typed())

    def _inputs(self) -> list[Widget]:
        return list(self.query(".value"))


class Edit(Composer):
    """Approves with other arguments."""

    HEAD = "Edit"

    def parts(self) -> Iterable[Widget]:
        """Yield a form for each action that may be edited."""
        for action in self.gate["card"]["actions"]:
            if may_edit(action):
                yield Lines(
                    [make_line(make_span(action["title"] or action["id"], BOLD), Span(f"  {action['id']}", SOFT))]
                )
                yield ArgumentsForm(action)
        yield from conditions_of(self.gate)
        yield Input(placeholder="A comment, if you like", id="comment")

    def body(self) -> Json:
        """Return the decision. Raises ValueError."""
        new = {form.action["id"]: form.arguments() for form in self.query(ArgumentsForm)}
        now = decisions.arguments_of(self.gate)
        changed = {name: arguments for name, arguments in new.items() if arguments is not now[name]}
        body = decisions.edit(self.gate, changed, self.query_one("#comment", Input).value)
        if not decisions.edits_of(self.gate, body):
            raise Missing("Nothing is changed yet.")
        return body | self.conditions()


def may_edit(action: Json) -> bool:
    """Tell whether the action's arguments may be edited."""
    return decisions.EDIT in (action.get("verdicts") or ()) and action.get("arguments") is not None


def label_of(field: Field, *, needed: bool = False) -> Line:
    """Return a field's label, with what it takes."""
    must = [Span("  must be filled in or changed", "stop")] if needed else []
    optional = "" if field.required else ", may be left out"
    hint = f"  {make_visible(field.hint)}" if field.hint else ""
    return make_line(make_span(field.label, BOLD), Span(f"  {field.kind}{optional}{hint}", SOFT), *must)


def input_of(field: Field) -> Widget:
    """Return the widget in which a field is edited."""
    if field.kind == forms.CHOICE and field.value in field.options:
        options = [(Content(make_visible(option)), at) for at, option in enumerate(field.options)]
        return Select(options, value=field.options.index(field.value), allow_blank=False, classes="value")
    if field.multiline:
        return TextArea(field.text, classes="value", tab_behavior="focus")
    return Input(field.text, classes="value", select_on_focus=False)


def _text(widget: Widget, field: Field) -> str:
    """Return what a widget holds, as the field reads it."""
    if isinstance(widget, Select):
        chosen = field.options[widget.value] if isinstance(widget.value, int) else field.value
        return forms.written(chosen, field.kind)
    return widget.text if isinstance(widget, TextArea) else widget.value if isinstance(widget, Input) else field.text
