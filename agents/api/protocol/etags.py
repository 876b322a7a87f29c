"""ETags: a client that has an answer asks whether it is still the same, and then gets 304 without a body.

For programs that keep an answer themselves. No cache on the way may, which is another matter (`no-store`).
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags

IF_NONE_MATCH: dict[str, Any] = {
    "in": "header",
    "name": "If-None-Match",
    "required": False,
    "schema": {"type": "string", "title": "If-None-Match"},
    "description": "The `ETag` of an answer that you have: if the answer would be the same, you get 304.",
    "example": '"2c26b46b68ffc68ff99b453c1d304134"',
}
ETAG: dict[str, Any] = {"schema": {"type": "string"}, "description": "A digest of this answer's bytes."}
UNCHANGED: dict[str, Any] = {"description": "The answer is the same as yours.", "headers": {"ETag": ETAG}}


def named(request: HttpRequest, response: HttpResponse) -> HttpResponse:
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
