"""What the checker reads and says."""

from __future__ import annotations

from typing import Any, NamedTuple

Rows = list[dict[str, Any]]
Dump = dict[str, Rows]
World = dict[str, Any]  # entries, mails, requests: see ..outside
ENDED = {"completed", "failed", "cancelled"}


class Violation(NamedTuple):
    """Something that must never be. `kind` is one of the words at .checker."""

    kind: str
    says: str
