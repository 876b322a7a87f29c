"""What Django's middleware passes on, as a type."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase]  # what answers a request
# Asked for by probes and scrapes: what answers there waits for no database that hangs, whatever cookie is sent.
PROBED = frozenset({"/healthz", "/readyz", "/metrics"})
