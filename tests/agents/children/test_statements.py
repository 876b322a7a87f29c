"""The number of statements that children cost: each is a round trip that somebody waits for."""

from __future__ import annotations

from agents.runner import engine
from tests.factories.driven_runs import advance
from tests.harness.sent_statements import sent

from .families import child, make_parent, to_rest


def test_a_child_costs_a_fixed_number_of_statements_however_many_there_are() -> None:
    """A figure that falls may be written down here; one that rises needs a reason."""

    def of(many: int) -> tuple[int, int]:
        run = make_parent(*(f"n{number}" for number in range(many)))
        with sent() as starting:
            advance(run)
        for number in range(many):
            advance(child(run, f"n{number}"))
        run.refresh_from_db()
        with sent() as gathering:
            engine.advance(run.pk)
        assert to_rest(run).status == "completed"
        return len(starting), len(gathering)

    of(2)
    few, many = of(3), of(13)
    assert ((many[0] - few[0]) / 10, (many[1] - few[1]) / 10) == (
        12,
        1,
    )  # to start one; to read one's state
