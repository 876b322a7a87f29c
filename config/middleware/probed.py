"""Replaces the Host of probes and scrapes, which use addresses that cannot be listed as hosts: a pod's, a container's.

On the pages for them, the Host that was sent is put aside before anything checks it, and replaced by an allowed one:
what a stranger writes there is neither refused nor ever part of an answer. A rule that goes by the client's address
alone still checks the Host that was sent (config.web.proxies).
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import PROBED, Respond
from config.web.proxies import SENT_HOST


def middleware(get_response: Respond) -> Respond:
    """Let these pages be requested under any Host."""
    first = settings.ALLOWED_HOSTS[0].lstrip(".")
    ours = first if first != "*" else "localhost"

    def respond(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBED:
            request.META[SENT_HOST] = request.META.get("HTTP_HOST", "")
            request.META["HTTP_HOST"] = ours
        return get_response(request)

    return respond
