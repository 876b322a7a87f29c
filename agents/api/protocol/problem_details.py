"""The problem document (RFC 9457) that each error of the API is answered with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse

from checkpoints import request_ids

from .schemas import ApiSchema

MEDIA_TYPE = "application/problem+json"


class Fault(ApiSchema):
    """One parameter that was refused."""

    example: ClassVar = {"parameter": "status", "detail": "'idle' is none of queued, running"}

    parameter: str
    """The parameter's name, or a JSON Pointer into the body or the state."""
    detail: str
    """What is wrong with it."""


class ProblemDetails(ApiSchema):
    """Problem details (RFC 9457): what went wrong, and what to do about it."""

    example: ClassVar = {
        "type": "about:blank", "title": "Not Found", "status": 404,
        "detail": "No such run, or you may not see it. GET /api/runs lists those that you may see.",
        "code": "stale_token", "instance": "/api/runs/7", "request_id": "5f0c1d2e3b4a49f8a7c6d5e4f3a2b1c0",
        "errors": [], "impact": None, "changes": None, "gate": 42, "lease_until": None,
    }  # fmt: skip

    type: str = "about:blank"
    """Always this value; the status says the kind."""
    title: str
    """The status in words."""
    status: int
    """The HTTP status."""
    detail: str
    """What went wrong, and what to do."""
    code: str = ""
    """The reason, for programs; empty if the status says it."""
    instance: str
    """The requested path."""
    request_id: str = ""
    """The id of the request, as in `X-Request-ID`: the server's log has it."""
    errors: list[Fault] = []
    """The refused parameters and members; for status 400 and 422."""
    impact: dict[str, Any] | None = None
    """For status 409, if the order would now do something else: what it would do, as POST …/impacts answers it."""
    changes: list[dict[str, Any]] | None = None
    """For status 409, if the proposal has changed: what changed since you looked."""
    gate: int | None = None
    """The gate at which the run waits: wait for its outcome at /api/gates/{gate}/outcome, then claim the run."""
    lease_until: datetime | None = None
    """Until when the run stays claimed, at least."""


def encode_problem(path: str, status: int, detail: str, errors: Sequence[Fault] = (), **more: Any) -> bytes:
    """Return a problem document about the request to this path; `more` are further members of ProblemDetails."""
    written = ProblemDetails(
        title=HTTPStatus(status).phrase, status=status, detail=detail, instance=path,
        request_id=request_ids.current(), errors=list(errors), **more,
    )  # fmt: skip
    return written.model_dump_json().encode()


def answer_problem(
    request: HttpRequest, status: int, detail: str, errors: Sequence[Fault] = (), **more: Any
) -> HttpResponse:
    """Return a problem document as the answer to a request; `more` are further members of ProblemDetails."""
    body = encode_problem(request.path, status, detail, errors, **more)
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE)
