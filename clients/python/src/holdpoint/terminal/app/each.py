"""A verdict for each action, and the answer to a recovery gate's question."""

from __future__ import annotations

import json
from collections.abc import Iterable

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, RadioButton, RadioSet, Select

from .. import decisions, describe
from ..lines import BOLD, SOFT, Span, make_line, make_span
from .deciding import Composer, Json, Missing, conditions_of, plain_label, read_response
from .drawing import Lines
from .editing import ArgumentsForm, may_edit

WORDS = {"approve": "Approve", "edit": "Edit", "reject": "Reject", "respond": "Respond"}


class ActionVerdict(Vertical):
    """One action: its arguments, its verdict, and what that needs."""

    def __init__(self, action: Json) -> None:
        super().__init__(classes="action")
        self.action = action

    def compose(self) -> Iterable[Widget]:
        """Lay it out."""
        yield Lines(describe.action(self.action))
        options = [(WORDS[verdict], verdict) for verdict in WORDS if verdict in (self.action.get("verdicts") or ())]
        yield Select(options, prompt="Choose a verdict", classes="verdict")  # never chosen for the reviewer
        yield Input(placeholder="The reason, or the answer", classes="words")
        if may_edit(self.action):
            yield ArgumentsForm(self.action)

    def on_mount(self) -> None:
        """Show what the first verdict needs."""
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
        """Yield the actions."""
        for action in self.gate["card"]["actions"]:
            yield ActionVerdict(action)
        yield from conditions_of(self.gate)
        yield Input(placeholder="A comment, if you like", id="comment")

    def body(self) -> Json:
        """Return the decision. Raises ValueError."""
        actions = {widget.action["id"]: widget.verdict_body() for widget in self.query(ActionVerdict)}
        then = {}
        if decisions.rejects_all(actions):
            if not self.gate["card"].get("on_reject"):
                raise Missing("All are rejected: go back and press r, to say what the run does then.")
            then = {"then": decisions.BACK}
        made = decisions.decide_actions(self.gate, actions, self.query_one("#comment", Input).value, **then)
        return made if then else made | self.conditions()


class Answer(Composer):
    """Answers the question of a gate that asks how to go on."""

    HEAD = "Answer"

    def parts(self) -> Iterable[Widget]:
        """Yield the answers, and the value that one may need."""
        asked = self.gate["card"]["question"]
        yield Lines([make_line(make_span(asked["text"], BOLD))])
        buttons = [
            RadioButton(plain_label(choice.get("label") or choice["id"]), name=choice["id"])
            for choice in asked["choices"]
        ]
        yield RadioSet(*buttons, id="choice")
        yield Lines([make_line(Span("The value, as JSON, where the answer needs one", SOFT))])
        yield Input(id="value")

    def body(self) -> Json:
        """Return the decision. Raises Missing."""
        chosen = self.query_one("#choice", RadioSet).pressed_button
        if chosen is None:
            raise Missing("Choose an answer.")
        typed, value = self.query_one("#value", Input).value, None
        if typed.strip():
            try:
                value = json.loads(typed)
            except (ValueError, RecursionError):
                raise Missing("Write the value as JSON.") from None
        return decisions.answer(self.gate, str(chosen.name), value)
