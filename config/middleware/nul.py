"""Refuses a NUL in an address before any view runs: PostgreSQL takes none, and no page's address has one."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponseBase

from agents.api.protocol import answer_problem, problems
from approvals.middleware import Respond
from config.web import refusals


def middleware(get_response: Respond) -> Respond:
    """Answer 404 for a NUL in the path, and 400 for one in the query; in the API 422, as for all junk there."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        in_path, of_api = "\0" in request.path_info, request.path_info.startswith("/api/")
        query = request.META.get("QUERY_STRING", "")
        if not in_path and "\0" not in query and "%00" not in query:
            return get_response(request)
        if in_path:
            return problems.not_found(request) if of_api else refusals.not_found(request, Http404())
        words = "An address holds no NUL (%00)."
        return answer_problem(request, 422, words) if of_api else refusals.bad_request(request, BadRequest(words))

    return respond
