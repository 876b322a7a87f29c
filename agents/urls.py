"""The pages of runs."""

from django.urls import path

from agents.pages import agents, checkpoint, comparison, devices, edits, forks, jump, orders, run_list, tokens
from agents.pages.run import page as run

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
    path("runs/<int:run_id>/events/", run.events_page, name="run-events"),
    path("runs/<int:run_id>/verification/", run.verification, name="run-verification"),
    path("runs/<int:run_id>/comparisons/", comparison.page, name="run-comparisons"),
    path("runs/<int:run_id>/cancellations/", orders.cancel, name="run-cancellations"),
    path("runs/<int:run_id>/forms/", orders.form, name="run-forms"),
    path("runs/<int:run_id>/impacts/", orders.impact, name="run-impacts"),
    path("runs/<int:run_id>/rewinds/", orders.rewind, name="run-rewinds"),
    path("runs/<int:run_id>/edits/", edits.create, name="run-edits"),
    path("runs/<int:run_id>/forks/", forks.create, name="run-forks"),
    path("runs/<int:run_id>/wakes/", orders.wake, name="run-wakes"),
    path("runs/<int:run_id>/signal/", orders.page, name="run-signal"),
    path("runs/<int:run_id>/signals/", orders.send, name="run-signals"),
    path("runs/<int:run_id>/settlements/", orders.settle, name="run-settlements"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/", checkpoint.page, name="checkpoint"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/", checkpoint.name, name="checkpoint-names"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/removals/", checkpoint.unname, name="checkpoint-name-removals"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/notes/", checkpoint.add_note, name="checkpoint-notes"),
    path(
        "runs/<int:run_id>/checkpoints/<int:seq>/notes/<int:note>/removals/",
        checkpoint.remove_note,
        name="checkpoint-note-removals",
    ),
    path("runs/<int:run_id>/checkpoints/<int:seq>/reveals/", checkpoint.reveal, name="checkpoint-reveals"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/edit/", edits.page, name="checkpoint-edit"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/fork/", forks.page, name="checkpoint-fork"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value<path:pointer>", checkpoint.value, name="checkpoint-value"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value", checkpoint.value, {"pointer": ""}, name="checkpoint-value"),
]
