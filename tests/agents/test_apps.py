"""What the apps register with each other."""

from __future__ import annotations

from django.apps import apps

from approvals.consequences import impact_sources
from checkpoints.retention import stray_artifacts


def test_it_is_registered_once_however_often_django_says_that_it_is_ready() -> None:
    """A test that changed INSTALLED_APPS had every gate's repeats looked up twice from then on."""
    before = len(impact_sources._registered), len(stray_artifacts._sources)
    for name in ("agents", "approvals"):
        apps.get_app_config(name).ready()
    assert (len(impact_sources._registered), len(stray_artifacts._sources)) == before
