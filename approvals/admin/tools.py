"""Tools: saving makes the next version."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest

from approvals import tools
from approvals.models import Tool
from approvals.policy_changes import tool_changes
from approvals.schema import walk
from checkpoints.admin.base import NewestVersionsFilter, VersionedAdmin, VersionedForm, make_column
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json

MONO = "vLargeTextField mono"
EXAMPLE = """{
  "type": "object",
  "properties": {
    "to": {"type": "string"},
    "amount": {"type": "string", "format": "decimal"}
  },
  "required": ["to", "amount"]
}"""


class ToolForm(VersionedForm[Tool]):
    """The form of a tool version: its schema as JSON, its labels and pins a line each."""

    schema = forms.CharField(
        label="Arguments",
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": MONO}),
        initial=EXAMPLE,
        help_text=(
            "The JSON Schema of the arguments. Gates and edits that do not match it are refused, and so are "
            "arguments that it does not name, unless it says “additionalProperties”. To show a value under another "
            "name, use “oneOf” with “const” and “title”: reviewers see both."
        ),
    )
    labels = forms.CharField(
        label="Labels",
        required=False,
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false"}),
        help_text=(
            "One line for each argument: “/amount: Amount (EUR)”. Without a label, reviewers read the argument's name."
        ),
    )
    pinned = forms.CharField(
        label="Pinned",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="Arguments that are shown first and never folded, one per line: “/amount”.",
    )

    class Meta:
        model = Tool
        fields = ("team", "name", "title", "schema", "labels", "pinned", "risk", "irreversible", "undo", "used")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            schema = self.instance.schema
            self.initial["schema"] = json.dumps(tools.unlabelled(schema), ensure_ascii=False, indent=2)
            called = tools.labels(schema).items()
            self.initial["labels"] = "\n".join(f"{place}: {label}" for place, label in called)
            self.initial["pinned"] = "\n".join(self.instance.pinned)

    def clean_schema(self) -> dict[str, Any]:
        """Return the schema, closed to other names unless it says that it is open."""
        try:
            schema = canonical_json.parse_json(self.cleaned_data["schema"])
        except ValueRefused as refused:
            place = (f" at {refused.pointer}") if refused.pointer else ""
            raise forms.ValidationError(f"Write JSON: {refused.reason}{place}.") from refused
        if wrong := tools.fault(schema):
            raise forms.ValidationError(wrong)
        closed: dict[str, Any] = tools.closed(schema)
        return closed

    def clean_labels(self) -> dict[str, str]:
        """Map each pointer to what the argument is called."""
        found: dict[str, str] = {}
        for line in self.cleaned_data["labels"].splitlines():
            place, result, label = line.partition(":")
            if line.strip() and not (result and label.strip()):
                raise forms.ValidationError(f"Write a pointer, a colon and a label, as in “/amount: Amount”: {line}")
            if line.strip():
                found[place.strip()] = label.strip()[: tools.LABEL]
        return found

    def clean_pinned(self) -> list[str]:
        """Return the pointers, each once."""
        lines = [line.strip() for line in self.cleaned_data["pinned"].splitlines()]
        return list(dict.fromkeys(filter(None, lines)))

    def clean(self) -> dict[str, Any]:
        """Refuse labels and pins of unknown arguments, undoing the irreversible, and edits of an outdated version."""
        data = super().clean()
        schema = data.get("schema")
        if isinstance(schema, dict):
            known = {place for place, _ in walk.walk_members(schema)}
            for place in data.get("labels") or ():
                if place not in known:
                    self.add_error("labels", f"The schema writes out no argument {place}.")
            for place in data.get("pinned") or ():
                if not tools.knows(schema, place):
                    self.add_error("pinned", f"The schema has no argument {place}.")
            data["schema"] = tools.labelled(schema, data.get("labels") or {})
        if data.get("irreversible") and data.get("undo"):
            self.add_error("undo", "Leave this empty: the tool is marked as “cannot be undone”.")
        return data


@admin.register(Tool)
class ToolAdmin(VersionedAdmin[Tool]):
    """Saving makes the next version; gates keep the version that drew them, and older ones are only read."""

    list_display = ("name", "version", "team", "title", "risk", "pins", "irreversible", "used", "in_force")
    list_filter = (NewestVersionsFilter, "team", "risk", "used")
    list_select_related = ("team",)
    search_fields = ("name", "title", "team__name")
    ordering = ("team__name", "name", "-version")
    COUNTS = "New gates use {}."
    form = ToolForm
    fields = ToolForm.Meta.fields

    in_force = make_column("counts", "In force", boolean=True)

    @admin.display(description="Pinned")
    def pins(self, tool: Tool) -> str:
        """Return the pointers of the arguments that are shown first."""
        return ", ".join(tool.pinned) or "none"

    def save_model(self, request: HttpRequest, obj: Tool, form: forms.ModelForm[Tool], change: bool) -> None:
        """Write what was entered as the next version, with its event; what is milder waits for a second person."""
        reasons = tool_changes.save(obj, by=request.user)  # type: ignore[arg-type]
        if reasons:
            words = (
                f"Not in force yet: {' '.join(reasons)} Somebody else has to open this version and save it unchanged."
            )
            messages.warning(request, words)
