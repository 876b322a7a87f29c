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
    insights,
    reveals,
)
from .views.account import profile as account_profile
from .views.account import sessions as account_sessions
from .views.desk import away, claims, handing_over
from .views.lists import bulk, saved_views, snoozes
from .views.reaching import browsers, chat, notifications, waiting

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
    path("gates/<int:gate_id>/people/", conversation.people, name="gate_people"),
    path("gates/<int:gate_id>/questions/", conversation.ask, name="gate_questions"),
    path("gates/<int:gate_id>/drafts/", drafts.create, name="gate_drafts"),
    path("gates/<int:gate_id>/reveals/", reveals.create, name="gate_reveals"),
    path("gates/<int:gate_id>/decisions/", decisions.create, name="decisions"),
    path("gates/<int:gate_id>/receipt/", gates.receipt, name="gate_receipt"),
    path("gates/<int:gate_id>/undos/", decisions.undo, name="undos"),
    path("insights/", insights.page, name="insights"),
    path("insights/gates/", insights.gates, name="insight_gates"),
    path("account/", account_profile.page, name="account"),
    path("account/changes/", account_profile.save, name="account-changes"),
    path("account/sessions/", account_sessions.page, name="account-sessions"),
    path("account/sessions/others/removals/", account_sessions.end_others, name="account-sessions-others-removals"),
    path("account/sessions/<int:number>/removals/", account_sessions.end, name="account-session-removals"),
    path("account/notifications/", notifications.page, name="notifications"),
    path("account/notifications/settings/", notifications.change, name="notification-settings"),
    path("account/notifications/tests/", notifications.test, name="notification-tests"),
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
    path("account/notifications/browsers/", browsers.subscribe, name="browsers"),
    path("account/notifications/browsers/keys/", browsers.keys, name="browser-keys"),
    path("account/notifications/browsers/<int:browser>/removals/", browsers.remove, name="browser-removals"),
    path("account/waiting/", waiting.show, name="waiting"),
    path("account/notifications/slack/", chat.look_again, name="slack-lookups"),
]
