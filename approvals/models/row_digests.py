"""The digests by which events hold rows, and the versions of policies that are held by one.

A version of a policy never changes, so the event of its writing tells all that it says. A version that is in the table
alone was written by somebody without the key, and nothing is asked or decided by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from django.db.models import Model

from checkpoints.audit import covered_rows
from checkpoints.events import event_proof

# Left out where they are as in rows of a release that does not know them.
NEWER: dict[str, Any] = {
    "tokens_decide": True, "step_up_method": "any", "denials": 1, "stages": "", "rules": "", "requirements": "",
    "auto_sample": 10, "leaves": "title", "remind_before": None, "remind_share": 25, "undo_window": None,
    "settles_at": None, "settles_as": "", "ending": "", "shown": "", "bulk_risk": "low", "calendar_id": None,
    "escalation": [], "on_behalf_of_id": None,
}  # fmt: skip


def digest_row(row: Model, names: Sequence[str], **more: Any) -> str:
    """Return the digest of these columns of a row, without newer ones that are null or as they were before them."""
    columns = [name for name in names if name not in NEWER or getattr(row, name) not in (None, NEWER[name])]
    return covered_rows.digest_of_row(row, columns, **more)


def are_proven(rows: Mapping[str, str], *, former: bool = True) -> bool:
    """Tell whether a proven event recorded each of these digests last; always True if no key is set.

    `former`: as for `is_proven`.
    """
    return not event_proof.seal_key() or all(_is_proven(*row, event_proof.seal_key(), former) for row in rows.items())


class _Unproven(Exception):
    """Not remembered: the event may be written yet."""


def _is_proven(name: str, digest: str, key: bytes, former: bool) -> bool:
    try:
        return _proven(name, digest, key, former)
    except _Unproven:
        return False


@lru_cache(10_000)
def _proven(name: str, digest: str, key: bytes, former: bool) -> bool:
    """Return True for good, since an event stays: a policy is looked at whenever a gate opens or is decided."""
    events = [
        event for event in covered_rows.covering_events([name]) if event_proof.is_proven(*event[1:], former=former)
    ]
    if covered_rows.claims(events).get(name, ("", 0))[0] != digest:
        raise _Unproven
    return True
