"""A rolling update migrates first: the running release goes on writing to the new tables, beside the new code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED, Model
from django.utils import timezone

from agents.definition import registry
from checkpoints.runs.plans import PlanSpec
from config.examples import AGENTS
from tests.harness.services import run
from tests.harness.session import Session

from .databases import released
from .released import PLANS, RELEASED

_numbers = count(1)  # no two rows are alike
_VALUES: dict[str, Callable[[], Any]] = {
    "CharField": lambda: f"x{next(_numbers)}",
    "TextField": lambda: f"x{next(_numbers)}",
    "BinaryField": lambda: b"%d" % next(_numbers),
    "BooleanField": lambda: False,
    "DateTimeField": lambda: timezone.now() + timedelta(days=1),  # tokens expire after they were made
    "UUIDField": uuid4,
    "FloatField": lambda: 1.0,
    "JSONField": list,
    "SearchVectorField": lambda: "x",
    "DurationField": lambda: timedelta(days=1),
    "ArrayField": list,
}


def bare(model: type[Model]) -> dict[str, Any]:
    """Values for the columns of a model that have no default; its foreign keys lead nowhere."""
    demanded = [field for field in model._meta.concrete_fields if _demanded(field)]
    return {field.attname: _VALUES.get(field.get_internal_type(), lambda: next(_numbers))() for field in demanded}


def _demanded(field: models.Field[Any, Any]) -> bool:
    given = field.has_default() or field.db_default is not NOT_PROVIDED
    return not given and not getattr(field, "auto_now_add", False) and not isinstance(field, models.AutoField)


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
    new = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}.get(old._meta.db_table)
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


@pytest.fixture
def bundled_agents(settings: Any) -> Iterator[None]:
    settings.HOLDPOINT_AGENTS = list(AGENTS)
    registry.forget()
    yield
    registry.forget()


@pytest.mark.usefixtures("bundled_agents")
@pytest.mark.parametrize("agent", PLANS)
def test_a_run_that_the_running_release_began_goes_on(agent: str) -> None:
    """The steps of one changed under its version, so that no new worker served it while a run of the old waited."""
    version, digest = PLANS[agent]
    known = registry.agents().get((agent, version))
    if known is None:
        assert registry.way_of(PlanSpec(agent, version)), f"write an upcaster from {agent} {version}"
    else:
        assert known.digest.hex() == digest, f"the plan of {agent} {version} changed: raise its version"
