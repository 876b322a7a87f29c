"""What went wrong, as problem details (RFC 9457): each says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import Field

MEDIA_TYPE = "application/problem+json"
# What a client may meet at every address, beside what it asked for.
ANSWERED = {
    401: "Nobody is signed in.",
    404: "There is no such thing, or none that you may see.",
    405: "The address is only read.",
    409: "What is stored does not match its digest, and is not shown.",
    422: "A parameter is not what it has to be.",
}
# Where to look for what was not found, by the pages' own words for it.
LISTED = {
    "No such run": "/api/runs",
    "No such checkpoint": "/api/runs/{run_id}/checkpoints",
    "No such gate": "/api/gates",
}


class Fault(Schema):
    """One parameter that was refused."""

    parameter: str = Field(description="The parameter's name.", examples=["status"])
    detail: str = Field(description="What is wrong with it.", examples=["is none of queued, running, waiting"])


class Problem(Schema):
    """Problem details (RFC 9457): what went wrong, and what to do about it."""

    type: str = Field(default="about:blank", description="The status says which kind.", examples=["about:blank"])
    title: str = Field(description="The status in words.", examples=["Not Found"])
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(
        description="What went wrong here, and what to do.",
        examples=["No such run, or none that you may see. GET /api/runs lists those that you may see."],
    )
    instance: str = Field(description="The path that was asked for.", examples=["/api/runs/7"])
    errors: list[Fault] = Field(
        default=[], description="The parameters that were refused; for status 422.", examples=[[]]
    )


def problem(request: HttpRequest, status: int, detail: str, errors: Sequence[Fault] = ()) -> HttpResponse:
    """The answer to a request that came to nothing."""
    told = Problem(
        title=HTTPStatus(status).phrase, status=status, detail=detail, instance=request.path, errors=list(errors)
    )
    return HttpResponse(told.model_dump_json(), status=status, content_type=MEDIA_TYPE)


def not_signed_in(request: HttpRequest) -> HttpResponse:
    """401; the challenge is one that no browser answers with a dialog."""
    response = problem(request, 401, "Sign in at /accounts/login/ and send the session's cookie with the request.")
    response["WWW-Authenticate"] = 'Session realm="Holdpoint"'
    return response


def not_found(request: HttpRequest, reason: str = "") -> HttpResponse:
    """404, with the list to look in. The same for what is not there and for what the reader may not see."""
    if reason not in LISTED:
        return problem(request, 404, "There is no such address. GET /api/openapi.json describes every one there is.")
    named = request.resolver_match.kwargs if request.resolver_match else {}
    listed = LISTED[reason].format(**named)
    return problem(request, 404, f"{reason}, or none that you may see. GET {listed} lists those that you may see.")


def not_allowed(request: HttpRequest, allowed: Iterable[str]) -> HttpResponse:
    """405."""
    methods = ", ".join(sorted(allowed))
    response = problem(request, 405, f"This address takes {methods} and nothing else; decide and start on the pages.")
    response["Allow"] = methods
    return response


def refused(request: HttpRequest, errors: Iterable[dict[str, Any]]) -> HttpResponse:
    """422, from pydantic's errors."""
    faults = [Fault(parameter=str(error["loc"][-1]), detail=error["msg"]) for error in errors]
    return problem(request, 422, "Correct the parameters named in errors and ask again.", faults)
