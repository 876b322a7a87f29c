"""The pages of runs."""

from django.urls import path

from agents.views.checkpoints import checkpoint, comparison, names, notes, reveals
from agents.views.moves import edits, forks, orders, previews
from agents.views.run_page import events, run

from .views import agents, devices, jump, run_list, signals, tokens

urlpatterns = [
    path("jump/", jump.page, name="jump"),
    path("agents/", agents.page, name="agents"),
    path("agents/<str:name>/", agents.agent, name="agent"),
    path("agents/<str:name>/runs/", agents.start, name="agent-runs"),
    path("tokens/", tokens.page, name="tokens"),
    path("tokens/issuances/", tokens.create, name="token-issuances"),
    path("tokens/<int:token>/revocations/", tokens.revoke, name="token-revocations"),
    path("device/", devices.page, name="device"),
    path("device/codes/", devices.enter, name="device-codes"),
    path("device/confirmations/", devices.confirm, name="device-confirmations"),
    path("device/refusals/", devices.refuse, name="device-refusals"),
    path("runs/", run_list.page, name="runs"),
    path("runs/<int:run_id>/", run.page, name="run"),
    path("runs/<int:run_id>/timeline/", run.timeline, name="run-timeline"),
    path("runs/<int:run_id>/spoken/", run.spoken, name="run-spoken"),
    path("runs/<int:run_id>/events/", events.page, name="run-events"),
    path("runs/<int:run_id>/verification/", run.verification, name="run-verification"),
    path("runs/<int:run_id>/comparisons/", comparison.page, name="run-comparisons"),
    path("runs/<int:run_id>/cancellations/", orders.cancel, name="run-cancellations"),
    path("runs/<int:run_id>/forms/", previews.form, name="run-forms"),
    path("runs/<int:run_id>/impacts/", previews.impact, name="run-impacts"),
    path("runs/<int:run_id>/rewinds/", orders.rewind, name="run-rewinds"),
    path("runs/<int:run_id>/edits/", edits.create, name="run-edits"),
    path("runs/<int:run_id>/forks/", forks.create, name="run-forks"),
    path("runs/<int:run_id>/wakes/", orders.wake, name="run-wakes"),
    path("runs/<int:run_id>/signal/", signals.page, name="run-signal"),
    path("runs/<int:run_id>/signals/", signals.send, name="run-signals"),
    path("runs/<int:run_id>/settlements/", orders.settle, name="run-settlements"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/", checkpoint.page, name="checkpoint"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/", names.create, name="checkpoint-names"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/removals/", names.remove, name="checkpoint-name-removals"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/notes/", notes.create, name="checkpoint-notes"),
    path(
        "runs/<int:run_id>/checkpoints/<int:seq>/notes/<int:note>/removals/",
        notes.remove,
        name="checkpoint-note-removals",
    ),
    path("runs/<int:run_id>/checkpoints/<int:seq>/reveals/", reveals.create, name="checkpoint-reveals"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/edit/", edits.page, name="checkpoint-edit"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/fork/", forks.page, name="checkpoint-fork"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value<path:pointer>", checkpoint.value, name="checkpoint-value"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value", checkpoint.value, {"pointer": ""}, name="checkpoint-value"),
]
