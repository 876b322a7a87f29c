"""A run of many steps: told a window at a time, and no dearer to show than a short one."""

from __future__ import annotations

import pytest

from agents.pages.run import effects
from agents.pages.run import story as run_story
from checkpoints import actors, store
from checkpoints.models import Checkpoint
from tests.agents.pages.moves.sent_orders import said
from tests.agents.pages.stored_histories import PROPOSAL, Walk, begin
from tests.factories import ann, bob, decide, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

MOST = 12  # statements of one page, those for the session, the person and the frame included
LONG = "A letter of some pages. " * 2_000  # more than a row holds: it is a chunk of its own


@pytest.fixture(autouse=True)
def window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run be long sooner."""
    monkeypatch.setattr(run_story, "WINDOW", 12)
    monkeypatch.setattr(effects, "EFFECTS", 12)


def test_a_long_run_is_told_in_windows_and_its_newest_effects_are_drawn_or_all_on_demand() -> None:
    walk = begin(team := make_team())
    for turn in range(run_story.WINDOW + 1):
        walk.effect("pay", input_digest=turn.to_bytes(32))
        walk.save("pay", {"payment": {"id": f"p{turn}"}}, "pay", took=0)
    run, client = walk.release("queued"), signed_in(bob(team))
    newest = client.get(f"/runs/{run.pk}/").content.decode()
    assert "?before=3" in newest
    assert f"the newest of {run_story.WINDOW + 1}" in said(newest)
    older = client.get(f"/runs/{run.pk}/?before=3").content.decode()
    assert f'href="/runs/{run.pk}/?at=1#inspect"' in older
    assert "not yet" not in said(older)
    everything = client.get(f"/runs/{run.pk}/?all=1").content.decode()
    assert everything.count('<tr data-status="done"') == run_story.WINDOW + 1
    assert f'<td><a href="/runs/{run.pk}/?at=2#inspect">2</a></td>' in everything


def lived(turns: int) -> Walk:
    """A run of which there is all to tell: effects, notes, failures, gates, rewinds, what was reused, and forks."""
    walk = begin(team := make_team(), started_by=bob(team))
    walk.save("find_order", {"order": {"number": "A-1", "letter": LONG}}, "propose")
    for turn in range(turns):
        walk.fail("propose")
        walk.save("propose", {"proposal": PROPOSAL | {"note": f"turn {turn}"}}, "review", notes=["As asked."])
        decide(walk.ask(), ann(team), "reject", then="back", back_to="propose", comment="Not yet.")
        walk.go_on()
        walk.save("review", {}, "pay", kind="gate")
        walk.effect("pay", input_digest=turn.to_bytes(32))
        walk.save("pay", {"payment": {"id": f"p{turn}"}}, "propose")
        walk.rewind(2, "propose", {"feedback": [{"text": f"turn {turn}"}]})
        walk.save("propose", {"proposal": PROPOSAL}, "propose", kind="reused")
        fork = store.fork(Checkpoint.objects.get(run=walk.run, seq=2).pk, by=actors.SYSTEM, title=f"Fork {turn}")
        assert fork.lineage == walk.run.pk
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    walk.ask()
    return walk


def test_a_page_asks_the_database_no_more_of_a_long_run() -> None:
    short, long = lived(1), lived(run_story.WINDOW // 4)
    for address in ("", "?at=5", "?at=5&view=state", "?at=6&to=3", "?before=5", "timeline/"):
        asked = []
        for walk in (short, long):
            client = signed_in(bob(walk.run.team))
            with sent() as statements:
                assert client.get(f"/runs/{walk.run.pk}/{address}").status_code == 200
            asked.append(len(statements))
            assert len(statements) <= MOST, (address, "\n".join(each[:200] for each in statements))
        assert asked[1] <= max(asked[0], MOST - 1), address
