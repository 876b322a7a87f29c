"""Whether a request came through a proxy that FORWARDED_ALLOW_IPS names: uvicorn believes those alone."""

from __future__ import annotations

from django.http import HttpRequest

FORWARDED = "X-Forwarded-For"


def forwarded(request: HttpRequest) -> bool:
    """Tell whether somebody says that the request was forwarded, be it true or not."""
    return FORWARDED in request.headers


def believed(request: HttpRequest) -> bool:
    """Tell whether the client's address is the one that a proxy told.

    uvicorn sets port 0 beside the address that it takes from the header, and no connection comes from port 0.
    """
    return forwarded(request) and str(request.META.get("REMOTE_PORT", "")) == "0"
