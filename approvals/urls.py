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
from .views.desk import away, claims, handing_over

urlpatterns = [
    path("", inbox.page, name="inbox"),
    path("inbox/list/", inbox.listing, name="inbox_list"),
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
    path("gates/<int:gate_id>/claims/", claims.claim, name="gate_claims"),
    path("gates/<int:gate_id>/releases/", claims.release, name="gate_releases"),
    path("gates/<int:gate_id>/takeovers/", claims.take_over, name="gate_takeovers"),
    path("gates/<int:gate_id>/hand-over/", handing_over.page, name="gate_hand_over"),
    path("gates/<int:gate_id>/reassignments/", handing_over.create, name="gate_reassignments"),
    path("account/away/", away.page, name="away"),
    path("account/away/plans/", away.create, name="away-plans"),
    path("account/away/<int:delegation>/ends/", away.end, name="away-ends"),
    path("audit/", audit.page, name="audit"),
    path("audit/news/", audit.news, name="audit-news"),
    path("audit/seals/", audit_orders.seals, name="audit-seals"),
    path("audit/verifications/", audit_orders.verifications, name="audit-verifications"),
    path("audit/exports/", audit_orders.exports, name="audit-exports"),
    path("audit/events/<int:event_id>/erasures/", audit_orders.erasures, name="audit-erasures"),
]
