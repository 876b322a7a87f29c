"""Proofs of events that cover rows, and of checkpoints.

If a key is set (HOLDPOINT_SEAL_KEY), such an event carries a proof, an HMAC over its content, and a checkpoint one over
its digest: an attacker who has only the application's role can write events and checkpoints, but no proofs. An event's
proof also covers its version, which rises with each change of its subject: a copy of an older proven event does not
count as the newest.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from checkpoints.values.canonical_json import encode_canonical

ROWS, PROOF = "rows", "proof"
CHECKPOINTS = "proofs of checkpoints"  # the subject of the events since which checkpoints have them
REQUIRED = "proofs"  # the subject of the event since which policies' versions and erasures have proofs in a database


def seal_key() -> bytes:
    """Return the key of seals and proofs; empty if none is set."""
    return str(settings.HOLDPOINT_SEAL_KEY).encode()


def _keys() -> list[bytes]:
    """Return the current key of proofs and the former ones."""
    return [seal_key(), *(str(key).encode() for key in settings.HOLDPOINT_OLD_SEAL_KEYS)]


def proven(kind: str, subject: str, version: int, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's data with its proof, if it covers rows and a key is set."""
    if ROWS not in data or not seal_key():
        return dict(data)
    return {**data, PROOF: _proof(seal_key(), kind, subject, version, data)}


def is_proven(kind: str, subject: str, version: int, data: Mapping[str, Any], *, former: bool = True) -> bool:
    """Tell whether a process with the key, or a `former` one, wrote this event; always True if no key is set."""
    keys = _keys() if former else [seal_key()]
    values = {name: value for name, value in data.items() if name != PROOF}
    proof = str(data.get(PROOF, ""))
    return not seal_key() or any(
        hmac.compare_digest(proof, _proof(key, kind, subject, version, values)) for key in keys
    )


def of_digest(digest: bytes) -> bytes | None:
    """Return the proof of a checkpoint with this digest, 16 bytes; None if no key is set."""
    return _of_digest(seal_key(), digest) if seal_key() else None


def is_of_digest(proof: bytes, digest: bytes) -> bool:
    """Tell whether a process with the key saved the checkpoint with this digest; always True if no key is set."""
    return not seal_key() or any(hmac.compare_digest(proof, _of_digest(key, digest)) for key in _keys())


def _of_digest(key: bytes, digest: bytes) -> bytes:
    return hmac.digest(key, b"holdpoint checkpoint\n" + digest, "sha256")[:16]


def _proof(key: bytes, kind: str, subject: str, version: int, data: Mapping[str, Any]) -> str:
    content = encode_canonical([kind, subject, version, dict(data)])
    return hmac.digest(key, b"holdpoint event\n" + content, "sha256").hex()
