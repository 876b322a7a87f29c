"""Probes and scrapes reach a process by an address that nobody can list as a host: a pod's, a container's.

So for the pages that they ask for, the Host that was sent is put aside before anything looks at it, and replaced by
one of ours: what a stranger writes there is neither refused nor ever part of an answer. A rule that goes by the
client's address alone still looks at the Host that was sent (config.web.proxies).
"""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from approvals.middleware import PROBED, Respond
from config.web.proxies import SENT_HOST


def middleware(get_response: Respond) -> Respond:
    """Let these pages be asked for by any address."""
    first = settings.ALLOWED_HOSTS[0].lstrip(".")
    ours = first if first != "*" else "localhost"

    def respond(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBED:
            request.META[SENT_HOST] = request.META.get("HTTP_HOST", "")
            request.META["HTTP_HOST"] = ours
        return get_response(request)

    return respond
