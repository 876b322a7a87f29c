"""Packs what an execution of a step keeps as a memo, such as the result of a call."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from agents.errors import AgentError
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import encode_canonical


def packed(call: str, result: Any, *, instead: str) -> bytes:
    """Return a result as canonical JSON of at most as many bytes as a state may have. Raises AgentError.

    `instead`: what to do where it is larger.
    """
    try:
        content = encode_canonical(result)
    except ValueRefused as error:
        where = f"at {error.pointer} " if error.pointer else ""
        raise AgentError(f"{call}: the result {where}{error.reason}, so it cannot be kept.") from error
    if len(content) > (most := settings.HOLDPOINT_STATE_LIMIT):
        raise AgentError(f"{call}: the result has {len(content):,} bytes; {most:,} are the most. {instead}")
    return content
