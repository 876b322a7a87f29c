"""The problem document (RFC 9457) that each error of the API is answered with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

from checkpoints import request_ids

MEDIA_TYPE = "application/problem+json"


class Fault(Schema):
    """One parameter that was refused."""

    parameter: str = Field(
        description="The parameter's name, or a JSON Pointer into the body or the state.", examples=["status"]
    )
    detail: str = Field(description="What is wrong with it.", examples=["'idle' is none of queued, running"])


class ProblemDetails(Schema):
    """Problem details (RFC 9457): what went wrong, and what to do about it."""

    type: str = Field(
        default="about:blank", description="Always this value; the status says the kind.", examples=["about:blank"]
    )
    title: str = Field(description="The status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(
        description="What went wrong, and what to do.",
        examples=["No such run, or you may not see it. GET /api/runs lists those that you may see."],
    )
    code: str = Field(
        default="", description="The reason, for programs; empty if the status says it.", examples=["stale_token"]
    )
    instance: str = Field(description="The requested path.", examples=["/api/runs/7"])
    request_id: str = Field(
        default="",
        description="The id of the request, as in `X-Request-ID`: the server's log has it.",
        examples=["5f0c1d2e3b4a49f8a7c6d5e4f3a2b1c0"],
    )
    errors: list[Fault] = Field(
        default=[], description="The refused parameters and members; for status 400 and 422.", examples=[[]]
    )
    impact: dict[str, Any] | None = Field(
        default=None,
        description="For status 409, if the order would now do something else: what it would do, as POST …/impacts "
        "answers it.",
        examples=[None],
    )
    changes: list[dict[str, Any]] | None = Field(
        default=None,
        description="For status 409, if the proposal has changed: what changed since you looked.",
        examples=[None],
    )
    gate: int | None = Field(
        default=None,
        description="The gate at which the run waits: wait for its outcome at /api/gates/{gate}/outcome, then claim "
        "the run.",
        examples=[42],
    )
    lease_until: datetime | None = Field(
        default=None, description="Until when the run stays claimed, at least.", examples=[None]
    )


def document(path: str, status: int, detail: str, errors: Sequence[Fault] = (), **more: Any) -> bytes:
    """Return a problem document about the request to this path; `more` are further members of ProblemDetails."""
    written = ProblemDetails(
        title=HTTPStatus(status).phrase, status=status, detail=detail, instance=path,
        request_id=request_ids.current(), errors=list(errors), **more,
    )  # fmt: skip
    return written.model_dump_json().encode()


def problem(request: HttpRequest, status: int, detail: str, errors: Sequence[Fault] = (), **more: Any) -> HttpResponse:
    """Return a problem document as the answer to a request; `more` are further members of ProblemDetails."""
    told = document(request.path, status, detail, errors, **more)
    return HttpResponse(told, status=status, content_type=MEDIA_TYPE)
