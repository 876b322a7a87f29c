"""Metrics of the requests that this process answers, by view: not by address, which would be one series per object."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import Counter, Histogram

from approvals.middleware import Respond

ANSWERED = Counter(
    "holdpoint_http_requests", "Requests that this process answered, by view and status.", ["view", "status"]
)
TOOK = Histogram(
    "holdpoint_http_request_seconds",
    "Seconds until the answer began, by view. What waits is asked anew each time that it may have its answer.",
    ["view"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def middleware(get_response: Respond) -> Respond:
    """Count and time answers."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        response = get_response(request)
        view = request.resolver_match.view_name if request.resolver_match else "none"
        TOOK.labels(view).observe(time.perf_counter() - began)
        ANSWERED.labels(view, str(response.status_code)).inc()
        return response

    return respond
