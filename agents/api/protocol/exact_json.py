"""JSON answers in which saved values keep their exact bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from pydantic import BaseModel

from checkpoints.values.canonical_json import encode_canonical


def answer_json(plain: BaseModel, *, http_status: int = 200, location: str = "", **saved: bytes) -> HttpResponse:
    """Return the members of `plain`, then those of `saved`, which are already JSON and are not parsed."""
    headers = {"Location": location} if location else {}
    return HttpResponse(
        splice_json(plain, **saved), status=http_status, headers=headers, content_type="application/json"
    )


def splice_json(plain: BaseModel, **saved: bytes) -> bytes:
    """Return a JSON object, as `answer_json` sends it. `plain` has one member at least."""
    members = [f",{json.dumps(name)}:".encode() + value for name, value in saved.items()]
    return b"%b%b}" % (plain.model_dump_json().encode()[:-1], b"".join(members))


def of_state(state: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON of a state.

    By field, and a list by item, as the store saves them: each of those may be as deep as a value may be, and the state
    around them would be too deep.
    """
    members = [encode_canonical(name) + b":" + _of_field(state[name]) for name in sorted(state)]
    return b"{%b}" % b",".join(members)


def _of_field(value: Any) -> bytes:
    return b"[%b]" % b",".join(map(encode_canonical, value)) if isinstance(value, list) else encode_canonical(value)


def of_patch(patch: list[dict[str, Any]]) -> bytes:
    """Return a JSON Patch, its values as canonical JSON."""
    return b"[%b]" % b",".join(map(of_state, patch))  # a value may be a whole field, so it is as deep as one
