"""A database without room: whoever sends something is told to try again, and nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.test import Client

from agents.models import Signal
from checkpoints.models import Event, Run
from tests.agents.views.moves.sent_orders import member
from tests.agents.waits.conftest import own_agents
from tests.factories.driven_runs import make_run
from tests.harness.altered_rows import owner

__all__ = ["own_agents"]

FULL = """
CREATE FUNCTION refuse_for_want_of_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse_for_want_of_room BEFORE INSERT ON agents_signal
FOR EACH ROW EXECUTE FUNCTION refuse_for_want_of_room();
"""


@contextmanager
def no_room() -> Iterator[None]:
    """Let PostgreSQL refuse each signal as it does when its disk is full."""
    with owner() as admin:
        admin.execute(FULL)
        try:
            yield
        finally:
            admin.execute("DROP FUNCTION refuse_for_want_of_room CASCADE")


def sent(client: Client, run: Run) -> list[int]:
    """The statuses of a signal from the run's page, and of one by the API."""
    client.raise_request_exception = False
    page = client.post(f"/runs/{run.pk}/signals/", {"name": "go", "key": "k"})
    body = {"value": None, "key": "k"}
    told = client.post(f"/api/runs/{run.pk}/signals/go", body, content_type="application/json")
    retry = {answer.headers.get("Retry-After") for answer in (page, told) if answer.status_code == 503}
    assert retry <= {"5"}
    return [page.status_code, told.status_code]


def test_what_postgresql_has_no_room_for_is_a_503_and_nothing_of_it_is_kept() -> None:
    run = make_run("listener")
    client = member(run)
    with no_room():
        assert sent(client, run) == [503, 503]
    assert not Signal.objects.filter(run=run).exists()
    assert not Event.objects.filter(run_id=run.pk, kind="signal.received").exists()
    assert sent(client, run) == [302, 201]
