"""The pages of runs."""

from django.urls import path

from .views import (
    agents,
    cancellations,
    checkpoints,
    comparisons,
    edits,
    events,
    forks,
    impacts,
    jump,
    listing,
    names,
    notes,
    rewinds,
    runs,
    settlements,
)

urlpatterns = [
    path("jump/", jump.page, name="jump"),
    path("agents/", agents.page, name="agents"),
    path("agents/<str:name>/", agents.agent, name="agent"),
    path("agents/<str:name>/runs/", agents.start, name="agent-runs"),
    path("runs/", listing.page, name="runs"),
    path("runs/<int:run_id>/", runs.page, name="run"),
    path("runs/<int:run_id>/timeline/", runs.timeline, name="run-timeline"),
    path("runs/<int:run_id>/events/", events.page, name="run-events"),
    path("runs/<int:run_id>/verification/", runs.verification, name="run-verification"),
    path("runs/<int:run_id>/comparisons/", comparisons.page, name="run-comparisons"),
    path("runs/<int:run_id>/cancellations/", cancellations.create, name="run-cancellations"),
    path("runs/<int:run_id>/impacts/", impacts.create, name="run-impacts"),
    path("runs/<int:run_id>/rewinds/", rewinds.create, name="run-rewinds"),
    path("runs/<int:run_id>/edits/", edits.create, name="run-edits"),
    path("runs/<int:run_id>/forks/", forks.create, name="run-forks"),
    path("runs/<int:run_id>/settlements/", settlements.create, name="run-settlements"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/", checkpoints.page, name="checkpoint"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/", names.create, name="checkpoint-names"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/names/removals/", names.remove, name="checkpoint-name-removals"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/notes/", notes.create, name="checkpoint-notes"),
    path(
        "runs/<int:run_id>/checkpoints/<int:seq>/notes/<int:note>/removals/",
        notes.remove,
        name="checkpoint-note-removals",
    ),
    path("runs/<int:run_id>/checkpoints/<int:seq>/edit/", edits.page, name="checkpoint-edit"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/fork/", forks.page, name="checkpoint-fork"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value<path:pointer>", checkpoints.value, name="checkpoint-value"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value", checkpoints.value, {"pointer": ""}, name="checkpoint-value"),
]
