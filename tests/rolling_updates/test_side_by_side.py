"""A rolling update migrates first: the running release goes on writing to the new tables, beside the new code."""

from __future__ import annotations

import sys

from django.apps import apps
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from tests.harness.services import run
from tests.harness.session import Session

from .databases import released
from .released import RELEASED
from .rows import bare


def test_the_running_release_writes_to_the_new_tables_and_new_code_reads_it(servers: Session) -> None:
    with released(servers) as database, database.alias() as alias:
        for old in old_models():
            old._base_manager.using(alias).create(**bare(old))
        done = run(sys.executable, "-m", "config.migrate", env=database.environment, within=300)
        assert done.returncode == 0, done.stderr
        for old in old_models():
            assert_reads_as_its_own(old, alias)
            old._base_manager.using(alias).all()._raw_delete(alias)
            old._base_manager.using(alias).create(**bare(old)).save()
            assert_reads_as_its_own(old, alias)


def old_models() -> list[type[Model]]:
    """Return the models of the running release that have a table, as it knows them."""
    state = MigrationLoader(connection).project_state(list(RELEASED.items())).apps
    ours = [model for app in RELEASED for model in state.get_app_config(app).get_models(include_auto_created=True)]
    return [model for model in ours if model._meta.managed and not model._meta.proxy]


def assert_reads_as_its_own(old: type[Model], alias: str) -> None:
    """The new code reads the one row, and where the old one named no column it finds what it would have written."""
    new = apps.all_models[old._meta.app_label].get(str(old._meta.model_name))
    if new is None:
        return  # the new code is done with it, and a later release drops its table
    row = new._base_manager.using(alias).order_by("pk").first()  # the migration has written events of its own
    assert row is not None
    unknown = {field.column for field in new._meta.concrete_fields} - {
        each.column for each in old._meta.concrete_fields
    }
    for field in new._meta.concrete_fields:
        if field.column in unknown and field.has_default():
            assert getattr(row, field.attname) == field.get_default(), f"{new.__name__}.{field.name}"
