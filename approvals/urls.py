"""The addresses of the inbox and the gates. An action is a POST to a noun."""

from __future__ import annotations

from django.urls import path

from .views import (
    artifacts,
    audit,
    audit_orders,
    conversation,
    decisions,
    drafts,
    forms,
    gates,
    impacts,
    inbox,
    reveals,
)
from .views.lists import bulk, saved_views, snoozes

urlpatterns = [
    path("", inbox.page, name="inbox"),
    path("inbox/list/", inbox.listing, name="inbox_list"),
    path("inbox/bulk/", bulk.preview, name="bulk-previews"),
    path("inbox/bulk/decisions/", bulk.create, name="bulk-decisions"),
    path("inbox/bulk/progress/", bulk.progress, name="bulk_progress"),
    path("inbox/bulk/<int:order_id>/", bulk.page, name="bulk"),
    path("inbox/views/", saved_views.page, name="views"),
    path("inbox/views/savings/", saved_views.create, name="view-savings"),
    path("inbox/views/<int:view_id>/changes/", saved_views.change, name="view-changes"),
    path("gates/<int:gate_id>/snoozes/", snoozes.create, name="gate_snoozes"),
    path("gates/<int:gate_id>/", gates.page, name="gate"),
    path("gates/<int:gate_id>/status/", gates.status, name="gate_status"),
    path("gates/<int:gate_id>/preview/", gates.preview, name="gate_preview"),
    path("gates/<int:gate_id>/values/", gates.value, name="gate_value"),
    path("gates/<int:gate_id>/artifacts/<str:digest>/", artifacts.show, name="gate_artifact"),
    path("gates/<int:gate_id>/impacts/", impacts.create, name="gate_impacts"),
    path("gates/<int:gate_id>/forms/", forms.create, name="gate_forms"),
    path("gates/<int:gate_id>/looking/", conversation.looking, name="gate_looking"),
    path("gates/<int:gate_id>/remarks/", conversation.create, name="gate_remarks"),
    path("gates/<int:gate_id>/drafts/", drafts.create, name="gate_drafts"),
    path("gates/<int:gate_id>/reveals/", reveals.create, name="gate_reveals"),
    path("gates/<int:gate_id>/decisions/", decisions.create, name="decisions"),
    path("audit/", audit.page, name="audit"),
    path("audit/news/", audit.news, name="audit-news"),
    path("audit/seals/", audit_orders.seals, name="audit-seals"),
    path("audit/verifications/", audit_orders.verifications, name="audit-verifications"),
    path("audit/exports/", audit_orders.exports, name="audit-exports"),
    path("audit/events/<int:event_id>/erasures/", audit_orders.erasures, name="audit-erasures"),
]
