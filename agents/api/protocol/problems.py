"""The problem document (RFC 9457) with which each error of the API is answered: it says what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar

from django.http import Http404, HttpRequest, HttpResponse
from ninja.errors import AuthenticationError, HttpError, ValidationError

from agents import errors
from agents.access import Gone
from agents.api.protocol.schemas import ApiSchema
from agents.definition.fields import strip_prefix
from agents.errors import FieldError
from agents.work_errors import KeyRefused, OwnerLacksFactor, TokenNotAllowed, TooManyGates, WorkRefused
from approvals.assignments.errors import DeskRefused
from approvals.consequences.errors import ConsequencesChanged, RepeatNotConfirmed
from approvals.errors import STATUSES, DecisionRefused, Problem, Rejected, SecondLookNeeded, StaleGate
from checkpoints import request_ids
from checkpoints.errors import NotVerified, PlanChanged, ValueRefused
from checkpoints.values import json_pointer
from checkpoints.values.canonical_json import parse_json

MEDIA_TYPE = "application/problem+json"
MOST, COUNTED = 100, 10_000  # faults of one body: told at most, and listed at most
JSON = "application/json"
PAUSE = 5  # seconds after which a database that was away, or busy, is worth another request
# The errors that every address may answer.
ANSWERED = {
    401: "Nobody is signed in, or the token is not valid: unknown, expired, revoked, or its owner's account is off.",
    403: "The token lacks the scope for this.",
    404: "There is no such thing, or you may not see it.",
    405: "The address does not take this method.",
    409: "The stored data do not match their digest, and are not shown.",
    410: "A retention policy removed the checkpoint, or the database was set back to before `after`.",
    422: "A parameter is not valid.",
    429: "Too many requests a minute, or too many invalid tokens. `Retry-After` says when to try again.",
}
# The same for POST.
ORDERED = {
    400: "The body is not JSON, or is ambiguous.",
    403: "The CSRF token is missing or wrong, the token lacks the scope for this, or you may only read this run.",
    413: "The body is too large. Nothing was done.",
    415: "The Content-Type is not JSON. Nothing was done.",
    409: "The run has changed since you looked, or the stored data do not match their digest. Nothing was done.",
    422: "A member of the body is not valid, or needs confirmation. Nothing was done.",
}
# The list to look in, by the message of the Http404.
LISTED = {
    "No such run": "/api/runs",
    "No such checkpoint": "/api/runs/{run_id}/checkpoints",
    "No such gate": "/api/gates",
    "No such agent": "/api/agents",
    "No such effect": "/api/events?subject=run:{run_id}",
    "No such webhook": "/api/webhooks",
    "No such delivery": "/api/webhooks/{webhook_id}/deliveries",
}


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
    request: HttpRequest, status: int, detail: str, errors: Sequence[Fault] = (), *, headers: Any = None, **more: Any
) -> HttpResponse:
    """Return a problem document as the answer to a request; `more` are further members of ProblemDetails."""
    body = encode_problem(request.path, status, detail, errors, **more)
    return HttpResponse(body, status=status, content_type=MEDIA_TYPE, headers=headers)


Handler = Callable[[HttpRequest, Any], HttpResponse]


class NotJson(Exception):
    """The body's Content-Type is not JSON."""


def _not_signed_in(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    """Answer 401, with challenges for which no browser opens a dialog."""
    words = "Sign in at /accounts/login/ and send the session's cookie with the request, or send a token."
    if request.headers.get("Authorization"):
        words = (
            "This token is not valid: unknown, expired, revoked, or its owner's account is off. "
            "Send a valid one as `Authorization: Bearer hp_…`; your tokens are listed at /tokens/."
        )
    challenges = 'Session realm="Holdpoint", Bearer realm="Holdpoint"'
    return answer_problem(request, 401, words, headers={"WWW-Authenticate": challenges})


def _not_for_this(request: HttpRequest, error: TokenNotAllowed) -> HttpResponse:
    """Answer 403: the token is valid, but lacks the scope."""
    challenge = f'Bearer realm="Holdpoint", error="insufficient_scope", scope="{error.scope}"'
    return answer_problem(request, 403, str(error), code="insufficient_scope", headers={"WWW-Authenticate": challenge})


def not_found(request: HttpRequest, error: Http404 | None = None) -> HttpResponse:
    """Answer 404 with the list to look in: the same for what does not exist and for what the reader may not see.

    Answer 410 with the reason where it existed and is gone.
    """
    reason = str(error or "")
    if isinstance(error, Gone):
        return answer_problem(request, 410, reason)
    if reason not in LISTED:
        return answer_problem(request, 404, "There is no such address. GET /api/openapi.json describes all addresses.")
    named = request.resolver_match.kwargs if request.resolver_match else {}
    listed = LISTED[reason].format(**named)
    return answer_problem(request, 404, f"{reason}, or you may not see it. GET {listed} lists those that you may see.")


def not_allowed(request: HttpRequest, allowed: Iterable[str]) -> HttpResponse:
    """Answer 405."""
    methods = ", ".join(sorted(allowed))
    words = f"This address takes only requests with the method {methods}."
    return answer_problem(request, 405, words, headers={"Allow": methods})


def _refused(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Answer 422, from pydantic's errors: a parameter by its name, a member of the body by its JSON Pointer."""
    found = error.errors[:MOST]
    body = parse_json(request.body or b"null") if any(item["loc"][0] == "body" for item in found) else None
    faults = [Fault(parameter=_member(body, item["loc"]), detail=strip_prefix(item["msg"])) for item in found]
    words = "Nothing was done. Correct the parameters named in errors and ask again."
    return answer_problem(request, 422, words, faults, code="invalid")


def _member(body: Any, loc: Sequence[str | int]) -> str:
    """Return the parameter's name, or the pointer into the body, without the union members that pydantic adds."""
    if loc[0] != "body":
        return str(loc[-1])
    value, place = body, ""
    for part in loc[2:]:
        if isinstance(part, int):
            inside = isinstance(value, list) and part < len(value)
        else:
            inside = isinstance(value, dict) and part in value
        if inside:
            value = value[part]
        if inside or part == loc[-1]:
            place = json_pointer.join(place, str(part))
    return place or "/"


def broken(request: HttpRequest) -> HttpResponse:
    """Answer 500: a fault of the server's own."""
    words = "The server has a fault, which it has logged. Send the same request again, with its Idempotency-Key."
    return answer_problem(request, 500, words)


def unavailable(request: HttpRequest) -> HttpResponse:
    """Answer 503: the database was lost, has no connection free, or gave up, perhaps after it did what was asked."""
    return _not_now(request, "The database does not answer, is too busy, or cannot do this now.")


def disk_full(request: HttpRequest) -> HttpResponse:
    """Answer 503: the server has no room for a file."""
    return _not_now(request, "The server's disk is full.")


def _not_now(request: HttpRequest, why: str) -> HttpResponse:
    words = f"{why} The same request under its Idempotency-Key is done once."
    return answer_problem(request, 503, words, headers={"Retry-After": str(PAUSE)})


def _unread(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Answer 400 or 415 for a body that cannot be read, 403 for a write without the session's CSRF token."""
    if error.status_code == 403:
        return answer_problem(
            request, 403, "Send the session's CSRF token, the cookie csrftoken, as the header X-CSRFToken."
        )
    cause = error.__cause__
    if isinstance(cause, NotJson):
        kind = (request.content_type or "of no media type")[:100]
        words = f"The body is {kind}. Send it as `Content-Type: {JSON}`."
        return answer_problem(request, 415, words, headers={"Accept": JSON})
    if not isinstance(cause, ValueRefused):
        return answer_problem(request, error.status_code, "The body cannot be read. Send one JSON object.")
    faults = [Fault(parameter=cause.pointer or "/", detail=cause.reason)]
    return answer_problem(request, error.status_code, f"The body {cause.reason}. Send one JSON object.", faults)


def _not_decided(request: HttpRequest, error: DecisionRefused) -> HttpResponse:
    """Answer 403 to those who may not decide, 422 for a fault in the decision, 409 where the gate is the reason."""
    faults = []
    if isinstance(error, Rejected):
        faults = [Fault(parameter=_place(item), detail=item["message"]) for item in error.errors]
    changes = error.changes if isinstance(error, StaleGate) else None
    impact = error.impact.to_json() if isinstance(error, ConsequencesChanged) and error.impact else None
    if isinstance(error, RepeatNotConfirmed):
        faults = [Fault(parameter="/confirm", detail=f"must name {repeat.effect}") for repeat in error.repeats]
    if isinstance(error, SecondLookNeeded):
        faults = [Fault(parameter="/second_look", detail="must be true, after you looked")]
    status = STATUSES.get(error.code, 409)
    return answer_problem(request, status, str(error), faults, changes=changes, impact=impact, code=error.code)


def _faults(errors: Iterable[FieldError], place: str = "") -> list[Fault]:
    return [Fault(parameter=place + error["pointer"] or "/", detail=error["message"]) for error in errors]


def _place(fault: Problem) -> str:
    """Return the JSON Pointer to the fault in the body."""
    if not fault["action"]:
        return (f"/{fault['part']}" if fault["part"] else "") + fault["pointer"] or fault["at"] or "/"
    return json_pointer.join("/actions", fault["action"], fault["part"] or "arguments") + fault["pointer"]


def _not_worked(request: HttpRequest, error: WorkRefused) -> HttpResponse:
    """Answer a program whose change to a run was refused."""
    faults = _faults(getattr(error, "errors", ()))
    result = str(error) or " ".join((error.__doc__ or "").split())
    words = f"Nothing was recorded. Correct what errors names: {result}" if faults else result
    if isinstance(error, KeyRefused):
        faults = [Fault(parameter="Idempotency-Key", detail="must be 1 to 200 printable ASCII characters")]
    return answer_problem(
        request, error.status, words, faults, code=error.code, gate=error.gate, lease_until=error.until,
        headers={"Retry-After": str(error.seconds)} if isinstance(error, TooManyGates) else None,
    )  # fmt: skip


def _not_taken(request: HttpRequest, error: errors.InputRefused) -> HttpResponse:
    """Answer 422: a run's input, its configuration (the body's `config`) or a plan does not fit."""
    place = "/config" if isinstance(error, errors.ConfigRefused) else ""
    words = f"Nothing was done. Correct what errors names: {error}"
    return answer_problem(request, 422, words, _faults(error.errors, place), code="invalid")


def _unknown_agent(request: HttpRequest, error: errors.UnknownAgent) -> HttpResponse:
    """Answer 422: the body names an unknown agent."""
    return answer_problem(request, 422, str(error), [Fault(parameter="/agent", detail="is not known")], code="invalid")


def _not_verified(request: HttpRequest, error: NotVerified) -> HttpResponse:
    """Answer 409: stored data fail their digest."""
    words = f"Stored data do not match their digest ({error}). Ask the operator to run `manage.py verify`."
    return answer_problem(request, 409, words, code="not_verified")


def _not_done(request: HttpRequest, error: errors.RewindRefused) -> HttpResponse:
    """Answer 403 to those who may only read, 422 for a fault in the body, 409 with the impact if the run is why."""
    impact = error.impact.to_json() if isinstance(error, errors.ImpactChanged) else None
    faults = _faults(error.errors, "/config" if isinstance(error.__cause__, errors.ConfigRefused) else "")
    if isinstance(error, errors.NeedsConfirmation):
        faults = [Fault(parameter="/confirm", detail="must be true, to repeat what cannot be undone")]
    code = "invalid" if error.status == 422 and error.code == "refused" else error.code
    return answer_problem(request, error.status, str(error), faults, impact=impact, code=code)


def _as_it_says(status: int = 0, code: str = "") -> Handler:
    """Answer with an error's own words, and with its own status and code where none are given."""

    def answer(request: HttpRequest, error: Any) -> HttpResponse:
        return answer_problem(request, status or error.status, str(error), code=code or error.code)

    return answer


REFUSALS: dict[type[Exception], Handler] = {
    AuthenticationError: _not_signed_in,
    TokenNotAllowed: _not_for_this,
    # The token is valid, and opens something once its owner has a second factor.
    OwnerLacksFactor: _as_it_says(403, "second_factor"),
    errors.DeviceRefused: _as_it_says(400),  # with RFC 8628's word as the code
    WorkRefused: _not_worked,
    errors.InputRefused: _not_taken,
    errors.UnknownAgent: _unknown_agent,
    PlanChanged: _as_it_says(409, "plan_changed"),  # the version was registered with another plan
    Http404: not_found,
    ValidationError: _refused,
    NotVerified: _not_verified,
    HttpError: _unread,
    DecisionRefused: _not_decided,
    DeskRefused: _as_it_says(),
    errors.RewindRefused: _not_done,
}
