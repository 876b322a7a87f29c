"""The middleware of the whole site, and whether the address of a request's client can be trusted.

An address is trusted by the proxies that FORWARDED_ALLOW_IPS names. A trusted proxy's own request id is used too; from
anybody else it could be the id of another's request.
"""

from __future__ import annotations

from ipaddress import ip_address
from uuid import uuid4

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

from approvals.middleware import ASKED, PROBED, Respond
from checkpoints import request_ids

CONTENT_POLICY, REQUEST_ID = "Content-Security-Policy", "X-Request-ID"
TOLD = "X-Redirect-To"  # static/js/sending.js has the same name
FORWARDED = "X-Forwarded-For"
SENT_HOST = "holdpoint.host"  # in META: the Host of a page for probes, as it was sent
LOCAL = frozenset({"127.0.0.1", "::1"})


def give_request_id(get_response: Respond) -> Respond:
    """Give each request an id: in the answer's header, its log lines, its events and its problem documents."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        words = request.headers.get(REQUEST_ID, "") if is_believed(request) else ""
        request_id = words if request_ids.SHAPE.fullmatch(words) else uuid4().hex
        # Bound for longer than this call: Django logs what was refused after the last middleware. A request's context
        # ends with it.
        structlog.contextvars.bind_contextvars(request_id=request_id)
        with request_ids.answering(request_id):
            response = get_response(request)
        response.headers[REQUEST_ID] = request_id
        return response

    return respond


def replace_probes_host(get_response: Respond) -> Respond:
    """Replace the Host of probes and scrapes: they use addresses that cannot be listed as hosts, such as a pod's.

    On the pages for them, the Host that was sent is put aside before anything checks it, and replaced by an allowed
    one: what a stranger writes there is neither refused nor ever part of an answer. A rule that goes by the client's
    address alone still checks the Host that was sent (`trusted_address`).
    """
    first = settings.ALLOWED_HOSTS[0].lstrip(".")
    ours = first if first != "*" else "localhost"

    def respond(request: HttpRequest) -> HttpResponseBase:
        if request.path_info in PROBED:
            request.META[SENT_HOST] = request.META.get("HTTP_HOST", "")
            request.META["HTTP_HOST"] = ours
        return get_response(request)

    return respond


class CompressedPages(GZipMiddleware):
    """Django's compression, for responses that are no streams: under ASGI each piece of one would be a gzip member.

    A browser decodes the first member and silently drops the rest, so that an export would end after its first piece.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a response, unless it is a stream."""
        return response if response.streaming else super().process_response(request, response)


def add_content_policy(get_response: Respond) -> Respond:
    """Add the content policy to every answer that does not bring a narrower one of its own.

    Django's pages for developers get none: their styles and scripts are inline.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not (settings.DEBUG and response.status_code in (404, 500)):
            response.headers.setdefault(CONTENT_POLICY, settings.CONTENT_SECURITY_POLICY)
        return response

    return respond


def tell_redirect(get_response: Respond) -> Respond:
    """Answer 204 with the address in a header instead of a redirect, where a page's script asks for that.

    A script cannot read a redirect, only follow it. The page after each decision would be drawn twice: for the script,
    which throws it away, and for the browser, which the script then sends there.
    """

    def respond(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        if ASKED in request.headers and 300 <= answer.status_code < 400 and "Location" in answer.headers:
            answer.status_code = 204
            answer.headers[TOLD] = answer.headers["Location"]
            del answer.headers["Location"]
        return answer

    return respond


def is_believed(request: HttpRequest) -> bool:
    """Tell whether the client's address comes from a trusted proxy's header.

    uvicorn sets port 0 beside the address that it takes from the header, and no connection comes from port 0. If a
    proxy sends a port too, its header is not trusted here.
    """
    return FORWARDED in request.headers and str(request.META.get("REMOTE_PORT", "")) == "0"


def trusted_address(request: HttpRequest) -> str:
    """Return the client's address if permissions may be based on it, else "".

    A request through a proxy that FORWARDED_ALLOW_IPS does not name has the proxy's address, so it may be anybody's.
    And a stranger's page in a browser on this machine sends from this machine's address after DNS rebinding.
    """
    believable = FORWARDED not in request.headers or is_believed(request)
    trusted = believable and _nobody_elses(request.META.get(SENT_HOST, ""))
    return str(request.META.get("REMOTE_ADDR", "")) if trusted else ""


def is_local(request: HttpRequest) -> bool:
    """Tell whether the request comes from this machine itself."""
    return trusted_address(request) in LOCAL


def _nobody_elses(host: str) -> bool:
    """Tell whether no stranger can have a page at this Host: none, an IP address, one label, or an allowed host."""
    if not host:
        return True  # every browser sends one
    domain, _ = split_domain_port(host)
    try:
        return bool(ip_address(domain.strip("[]")))
    except ValueError:
        ours = [name for name in settings.ALLOWED_HOSTS if name != "*"]
        return bool(domain) and ("." not in host or validate_host(domain, ours))
