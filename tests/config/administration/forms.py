"""A form of the administration as a browser sends it back: every field with what stands in it."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup, Tag

# What the page of a policy posts.
POLICY = {
    "quorum": 1, "separation": "on", "reason_required": "on", "tokens_decide": "on", "on_expiry": "expire",
    "hourly": 120, "pause": "10 min", "bulk_risk": "low", "auto_sample": 10, "leaves": "title",
    "remind_share": 25, "step_up_method": "any",
}  # fmt: skip
UNSENT = ("submit", "button", "reset", "image", "file")


def standing(page: str) -> dict[str, Any]:
    """What the page's own form would send where nobody has touched it."""
    form = BeautifulSoup(page, "html.parser").select_one("#content-main form[id$=_form]")
    assert form is not None, "the page has no form"
    sent: dict[str, list[str]] = {}
    for field in form.select("input[name], select[name], textarea[name]"):
        for value in _values(field):
            sent.setdefault(str(field["name"]), []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in sent.items()}


def _values(field: Tag) -> list[str]:
    if field.has_attr("disabled") or field.get("type") in UNSENT:
        return []
    if field.name == "select":
        return [str(each["value"]) for each in field.select("option[selected]")]
    if field.name == "textarea":
        return [field.text.removeprefix("\n")]
    if field.get("type") in ("checkbox", "radio"):
        return [str(field.get("value", "on"))] if field.has_attr("checked") else []
    return [str(field.get("value", ""))]
