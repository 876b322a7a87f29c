"""The path that a worker keeps of a run is the one that the database has."""

from __future__ import annotations

import pytest

from agents.definition import registry
from agents.session.heartbeat import ClaimBeat
from agents.session.run_session import RunSession
from agents.steps.local_performer import LOCAL
from checkpoints import store
from checkpoints.models import Run
from checkpoints.store import claims, executions
from tests.factories.driven_runs import make_run


@pytest.mark.parametrize("read", [True, False], ids=["read before the save", "read after it"])
def test_a_save_is_once_on_the_path(read: bool) -> None:
    """A checkpoint saved before anybody had read the path was on it twice, the second time as its own parent."""
    run = make_run("payer")
    claim = claims.claim(run.pk, plan_ids=[run.plan_id], worker="w", lease=60)
    assert claim is not None
    session = RunSession(
        claim, Run.objects.get(pk=run.pk), registry.plans()[run.plan_id], store.load(run), ClaimBeat(claim), 1, LOCAL
    )
    assert not read or len(session.path.places) == 1
    spec = session.plan.step(session.snapshot.next_step)
    assert session.save("recovery", spec, {}, spec.name, slice_over=False)
    assert session.path.places == executions.path(session.snapshot.id)
