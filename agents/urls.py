"""The pages of runs."""

from django.urls import path

from .views import cancellations, checkpoints, listing, runs

urlpatterns = [
    path("runs/", listing.page, name="runs"),
    path("runs/<int:run_id>/", runs.page, name="run"),
    path("runs/<int:run_id>/timeline/", runs.timeline, name="run-timeline"),
    path("runs/<int:run_id>/events/", runs.events, name="run-events"),
    path("runs/<int:run_id>/verification/", runs.verification, name="run-verification"),
    path("runs/<int:run_id>/cancellations/", cancellations.create, name="run-cancellations"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/", checkpoints.page, name="checkpoint"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value<path:pointer>", checkpoints.value, name="checkpoint-value"),
    path("runs/<int:run_id>/checkpoints/<int:seq>/value", checkpoints.value, {"pointer": ""}, name="checkpoint-value"),
]
