"""Every address: pages of the two apps, the API, accounts, admin, health, metrics, the installed app."""

from django.contrib import admin
from django.urls import include, path

from config import metrics
from config.health import checks as health
from config.web import installable

handler400 = "config.web.refusals.bad_request"
handler404 = "config.web.refusals.not_found"
handler500 = "config.web.refusals.server_error"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("manifest.webmanifest", installable.manifest, name="manifest"),
    path("service-worker.js", installable.service_worker, name="service-worker"),
    path("offline/", installable.offline, name="offline"),
    path("api/", include("agents.api.urls")),
    path("", include("config.sign_in.urls")),
    path("admin/", admin.site.urls),
    path("", include("approvals.urls")),
    path("", include("agents.urls")),
]
