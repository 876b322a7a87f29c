"""A worker that a page asks to halt lets go of its run after a whole step, whether the page then moves it or not."""

from __future__ import annotations

from typing import Any

import pytest

from agents.errors import ImpactChanged
from agents.moves import rewind
from agents.session.heartbeat import HEART
from checkpoints import crash_points
from checkpoints.models import Run
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, make_run, state


def test_a_halt_whose_move_is_refused_costs_the_next_step_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start that was halted counted, so that a step which is tried once was never tried, and a person was asked."""
    monkeypatch.setattr(rewind, "HALT_SECONDS", 0.0)
    monkeypatch.setattr(crash_points, "_listeners", [])
    run = make_run("frugal")
    by = ann(run.team)

    def page(name: str, step: str, value: Any) -> None:
        """A person's order, of which something else was shown, while the first step is under way."""
        if (name, step) == ("after_step", "first"):
            with pytest.raises(ImpactChanged):
                rewind.rewind(Run.objects.get(pk=run.pk), to=1, by=by, seen="another")
            for beat in HEART.beats:
                beat.ask(0.0)  # now, rather than when the heart looks next

    crash_points.listen(page)
    advance(run)
    assert (run.status, run.reason, run.next_step) == ("queued", "halted, to be moved", "second")
    assert advance_to_rest(run).status == "completed"
    assert state(run)["b"] == 1
