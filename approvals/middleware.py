"""What Django's middleware passes on, as a type."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

Respond = Callable[[HttpRequest], HttpResponseBase]  # what answers a request
