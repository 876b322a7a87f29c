"""Makes the site an app that browsers install: its manifest, its service worker, and its page for no connection.

None of the three knows who asks. The service worker keeps the page for no connection and the files that this page
needs, whose names hold a digest of their content; it keeps no other page, as a gate may have changed since.
"""

from __future__ import annotations

import hashlib
import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_safe

GROUND = "#f4f6f5"  # of the icons; no style sheet reaches a manifest
FILES = ("css/main.css", "js/theme-first.js", "js/offline-page.js", "mark.svg")  # of the page for no connection
ICONS = (
    ("icons/app-192.png", "192x192", "any", "image/png"),
    ("icons/app-512.png", "512x512", "any", "image/png"),
    ("icons/app-maskable-512.png", "512x512", "maskable", "image/png"),
    ("mark.svg", "any", "any", "image/svg+xml"),
)


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    """Describe the app to the browser (W3C, Web Application Manifest)."""
    inbox = reverse("inbox")
    values = {
        "id": inbox, "start_url": inbox, "scope": "/", "name": "Holdpoint", "short_name": "Holdpoint",
        "description": "Approve, edit or reject what agents are about to do.",
        "display": "standalone", "background_color": GROUND, "theme_color": GROUND,
        "icons": [
            {"src": static(name), "sizes": sizes, "purpose": purpose, "type": kind}
            for name, sizes, purpose, kind in ICONS
        ],
    }  # fmt: skip
    return _answer(json.dumps(values), "application/manifest+json")


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    """Start the service worker of the whole site with the names of this release's files.

    Browsers compare the answer with the one before, so that a new release replaces the worker and what it kept.
    """
    page = render_to_string("offline.html")
    release = {
        "name": hashlib.sha256(page.encode()).hexdigest()[:12],
        "page": reverse("offline"),
        "files": [static(name) for name in FILES],
        "browsers": reverse("browsers"),
        "keys": reverse("browser-keys"),
        "icon": static("icons/app-192.png"),
        "badge": static("icons/badge-96.png"),
    }
    source = json.dumps(static("js/service-worker.js"))
    return _answer(f"self.release = {json.dumps(release)};\nimportScripts({source});\n", "text/javascript")


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    """Show the page that stands in for any page while there is no connection."""
    return render(request, "offline.html")


def _answer(text: str, media_type: str) -> HttpResponse:
    answer = HttpResponse(text, content_type=f"{media_type}; charset=utf-8")
    answer["Cache-Control"] = "no-cache"
    return answer
