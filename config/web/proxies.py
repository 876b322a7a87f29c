"""Decides whether the address of a request's client can be trusted, by the proxies that FORWARDED_ALLOW_IPS names."""

from __future__ import annotations

from ipaddress import ip_address

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

FORWARDED = "X-Forwarded-For"
SENT_HOST = "holdpoint.host"  # in META: the Host of a page for probes, as it was sent
LOCAL = frozenset({"127.0.0.1", "::1"})


def forwarded(request: HttpRequest) -> bool:
    """Tell whether the request claims to be forwarded, truly or not."""
    return FORWARDED in request.headers


def believed(request: HttpRequest) -> bool:
    """Tell whether the client's address comes from a trusted proxy's header.

    uvicorn sets port 0 beside the address that it takes from the header, and no connection comes from port 0. If a
    proxy sends a port too, its header is not trusted here.
    """
    return forwarded(request) and str(request.META.get("REMOTE_PORT", "")) == "0"


def trusted_address(request: HttpRequest) -> str:
    """Return the client's address if permissions may be based on it, else "".

    A request through a proxy that FORWARDED_ALLOW_IPS does not name has the proxy's address, so it may be anybody's.
    And a stranger's page in a browser on this machine sends from this machine's address after DNS rebinding.
    """
    if (forwarded(request) and not believed(request)) or not _nobody_elses(request.META.get(SENT_HOST, "")):
        return ""
    return str(request.META.get("REMOTE_ADDR", ""))


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
