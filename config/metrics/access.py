"""Access to the metrics: with the token, or from the networks; where neither is set, from this machine only."""

from __future__ import annotations

import hmac
from ipaddress import ip_address, ip_network

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse

from config.web import proxies


def refusal_for(request: HttpRequest) -> HttpResponse | None:
    """Return a 401 for a client that may not read, None for others. Raises Http404 where no token is set."""
    if _sends_token(request) or _asks_from_inside(request):
        return None
    if not settings.HOLDPOINT_METRICS_TOKEN:
        raise Http404
    refused = HttpResponse("Send the token of HOLDPOINT_METRICS_TOKEN.\n", status=401, content_type="text/plain")
    refused["WWW-Authenticate"] = 'Bearer realm="Holdpoint metrics"'
    return refused


def _sends_token(request: HttpRequest) -> bool:
    kind, _, sent = request.headers.get("Authorization", "").partition(" ")
    token = settings.HOLDPOINT_METRICS_TOKEN.encode()
    return bool(token) and kind.lower() == "bearer" and hmac.compare_digest(sent.strip().encode(), token)


def _asks_from_inside(request: HttpRequest) -> bool:
    """Tell whether the client's address may read the metrics."""
    if settings.HOLDPOINT_METRICS_NETWORKS:
        return _within(proxies.trusted_address(request), settings.HOLDPOINT_METRICS_NETWORKS)
    return not settings.HOLDPOINT_METRICS_TOKEN and proxies.is_local(request)


def _within(address: str, networks: list[str]) -> bool:
    try:
        client = ip_address(address)
    except ValueError:  # no trusted address
        return False
    return any(client in ip_network(network) for network in networks)
