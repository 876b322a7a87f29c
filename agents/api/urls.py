"""The addresses under /api/, each behind the same door."""

from __future__ import annotations

from django.urls import URLPattern, include, path, re_path

from agents.api.protocol.entry import guarded
from agents.api.protocol.problems import not_found

from .interface import api

# Not `app_name`: by that name Django would put another namespace around these.
inside, app, namespace = api.urls
for pattern in inside:
    if isinstance(pattern, URLPattern):
        pattern.callback = guarded(pattern.callback)

urlpatterns = [
    path("", include((inside, app), namespace=namespace)),
    re_path("", guarded(not_found), name="api-nowhere"),
]
