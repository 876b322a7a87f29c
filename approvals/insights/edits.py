"""Counts which fields people edit before they approve: where an agent's proposals are wrong most often."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from django.db import connection

from approvals.models import Outcome
from checkpoints.values import canonical_json

from .closed_gates import CountedGate

MOST = 2_000  # edits, the newest ones
_PATCHES = "SELECT gate_id, patch FROM approvals_outcome WHERE gate_id = ANY(%s) AND patch <> %s"
_EDITED = frozenset({Outcome.Kind.EDITED, Outcome.Kind.MIXED})


def fields(rows: Iterable[CountedGate]) -> dict[str, list[int]]:
    """Return, by edited field, the ids of the gates in which it was edited; the most frequent first.

    A field is a JSON Pointer into the state, with `*` for each place in a list.
    """
    edited = [row.id for row in rows if row.kind in _EDITED][:MOST]
    found: dict[str, list[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PATCHES, [edited, b"[]"])
        for gate, patch in cursor.fetchall():
            for field in sorted(of_patch(canonical_json.decode_canonical(bytes(patch)))):
                found.setdefault(field, []).append(gate)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def of_patch(patch: Collection[dict[str, Any]]) -> set[str]:
    """Return the fields that a JSON Patch changes; a test changes none."""
    return {_field(item["path"]) for item in patch if item["op"] != "test"}


def _field(pointer: str) -> str:
    """Write `*` for each place in a list."""
    return "/".join("*" if part == "-" or part.isdigit() else part for part in pointer.split("/"))
