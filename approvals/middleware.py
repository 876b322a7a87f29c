"""The type of Django's middleware functions, and the addresses of probes."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase]  # a view, or the next middleware
# Addresses for probes and scrapes: they answer without the database, which may hang, whatever cookie is sent.
ASKED = "X-Tell-Redirect"  # of a form that a script sends; static/js/sending.js has the same name
PROBED = frozenset({"/healthz", "/readyz", "/metrics"})
