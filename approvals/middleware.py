"""The type of Django's middleware functions, and the addresses of probes."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase]  # a view, or the next middleware
# Addresses for probes and scrapes: they answer without the database, which may hang, whatever cookie is sent.
PROBED = frozenset({"/healthz", "/readyz", "/metrics"})
