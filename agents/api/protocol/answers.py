"""JSON answers: saved values keep their exact bytes, lists go on by cursor, and ETags say what is still the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from pydantic import BaseModel, Field

from agents.api.protocol.schemas import ApiSchema
from checkpoints.values.canonical_json import encode_canonical

MOST_ITEMS = 200
IF_NONE_MATCH: dict[str, Any] = {
    "in": "header", "name": "If-None-Match", "required": False,
    "schema": {"type": "string", "title": "If-None-Match"},
    "description": "The `ETag` of an answer that you have: if the answer would be the same, you get 304.",
    "example": '"2c26b46b68ffc68ff99b453c1d304134"',
}  # fmt: skip
ETAG: dict[str, Any] = {"schema": {"type": "string"}, "description": "A digest of this answer's bytes."}
UNCHANGED: dict[str, Any] = {"description": "The answer is the same as yours.", "headers": {"ETag": ETAG}}


def answer_json(plain: BaseModel, *, http_status: int = 200, location: str = "", **saved: bytes) -> HttpResponse:
    """Return the members of `plain`, then those of `saved`, which are already JSON and are not parsed."""
    body, headers = splice_json(plain, **saved), {"Location": location} if location else {}
    return HttpResponse(body, status=http_status, headers=headers, content_type="application/json")


def splice_json(plain: BaseModel, **saved: bytes) -> bytes:
    """Return a JSON object, as `answer_json` sends it. `plain` has one member at least."""
    members = [f",{json.dumps(name)}:".encode() + value for name, value in saved.items()]
    return b"%b%b}" % (plain.model_dump_json().encode()[:-1], b"".join(members))


def encode_state(state: Mapping[str, Any]) -> bytes:
    """Return the canonical JSON of a state.

    By field, and a list by item, as the store saves them: each of those may be as deep as a value may be, and the state
    around them would be too deep.
    """
    members = [encode_canonical(name) + b":" + encode_field(state[name]) for name in sorted(state)]
    return b"{%b}" % b",".join(members)


def encode_field(value: Any) -> bytes:
    """Return the canonical JSON of a field of a state."""
    return b"[%b]" % b",".join(map(encode_canonical, value)) if isinstance(value, list) else encode_canonical(value)


def encode_patch(patch: list[dict[str, Any]]) -> bytes:
    """Return a JSON Patch, its values as canonical JSON."""
    return b"[%b]" % b",".join(map(encode_state, patch))  # a value may be a whole field, so it is as deep as one


class Paging(ApiSchema):
    """The start and the length of a page."""

    example: ClassVar = {"cursor": "41", "limit": 50}

    cursor: str = Field("", pattern=r"^[0-9]{0,18}$")
    """The `next` of the previous page; without it, the first page."""
    limit: int = Field(50, ge=1, le=MOST_ITEMS)
    """The largest number of items."""

    @property
    def before(self) -> int:
        """Return the id that those of this page are below, where the newest come first."""
        return int(self.cursor) if self.cursor else 2**63 - 1

    @property
    def place(self) -> int:
        """Return the last id or number of the previous page; 0 for the first page."""
        return int(self.cursor or "0")


class Page(ApiSchema):
    """One page of rows; a subclass gives `items` its shape."""

    example: ClassVar = {"next": "41"}

    items: list[Any]
    next: str | None
    """The `cursor` of the next page; null at the end."""

    @classmethod
    def answer_rows(
        cls, results: QuerySet[Any] | list[Any], asked: Paging, *, place: str = "pk", **context: Any
    ) -> HttpResponse:
        """Answer with a page of what was found, of which one row more than the page holds is read.

        `place` names the field of the cursor; `context` is what the rows' resolvers need beside the row.
        """
        rows = list(results[: asked.limit + 1])
        more = str(getattr(rows[asked.limit - 1], place)) if len(rows) > asked.limit else None
        return answer_json(cls.model_validate({"items": rows[: asked.limit], "next": more}, context=context))


def add_etag(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Return the answer with a strong ETag of its bytes, or 304 to a client that has it. Streams get no ETag."""
    if request.method not in ("GET", "HEAD") or response.status_code != 200 or response.streaming:
        return response
    etag = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response["ETag"] = etag
    # Compression on the way turns it into a weak ETag, and the client then has that one.
    held = [word for word in parse_etags(request.headers.get("If-None-Match", "")) if word.removeprefix("W/") == etag]
    if not held and request.headers.get("If-None-Match") != "*":
        return response
    unchanged = HttpResponseNotModified()
    for name, value in response.items():
        if not name.startswith("Content-"):
            unchanged[name] = value
    unchanged["ETag"] = held[0] if held else etag
    return unchanged
