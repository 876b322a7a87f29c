"""Renders a reference to a file in words and as HTML: its name, its size, the SHA-256 of its content."""

from __future__ import annotations

import json
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.english import count_of
from checkpoints.values import artifacts
from checkpoints.values.artifacts import MARK

from . import untrusted

SHOWN = 12  # digits shown of a digest whose rest is folded
KNOWN = frozenset({MARK, "size", "media_type", "name"})


def is_plain(value: Any) -> bool:
    """Tell whether a value is a file's reference and nothing more."""
    return (
        artifacts.is_reference(value)
        and value.keys() <= KNOWN
        and all(isinstance(value.get(name, ""), str) for name in ("media_type", "name"))
    )


def render(value: artifacts.Reference, *, artifacts: str = "", folded: bool = False) -> SafeString:
    """Render a file in one line, with the whole digest, or its beginning and the rest folded."""
    name = untrusted.line(value.get("name") or "File", limit=120)
    if artifacts:
        name = format_html('<a href="{}{}/" download>{}</a>', artifacts, value[MARK], name)
    kind = untrusted.line(value["media_type"], limit=80) if value.get("media_type") else ""
    whole = format_html("<code>{}</code>", value[MARK])
    digest = format_html("<details><summary><code>{}…</code></summary>{}</details>", value[MARK][:SHOWN], whole)
    return format_html(
        '<span class="file-ref">{} <span class="hint">{}{}{}, SHA-256</span> {}</span>',
        name, filesizeformat(value["size"]), ", " if kind else "", kind, digest if folded else whole,
    )  # fmt: skip


def words(text: str) -> str:
    """Write a file in plain words, from the JSON in a field; "" where that is no JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        return ""
    if not is_plain(value):
        return untrusted.plain(text)
    name = untrusted.plain(value.get("name", ""), limit=80)
    size = count_of(value["size"], "byte")
    return ", ".join(filter(None, [name, size, f"SHA-256 {value[MARK][:SHOWN]}"]))


def address(gate_id: int) -> str:
    """Return the address of a gate's files."""
    return reverse("gate_artifact", args=[gate_id, "0"]).removesuffix("0/")
