"""A run of many steps: told a window at a time, and no dearer to show than a short one."""

from __future__ import annotations

import pytest

from agents.pages.run import story as run_story
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Run
from tests.agents.pages.moves.sent_orders import said
from tests.agents.pages.stored_histories import PROPOSAL, Walk, begin
from tests.factories import ann, bob, decide, make_team
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

MOST = 12  # statements of one page, those for the session, the person and the frame included
LONG = "A letter of some pages. " * 2_000  # more than a row holds: it is a chunk of its own


def test_a_long_run_is_told_in_windows() -> None:
    team = make_team()
    walk = begin(team)
    for _ in range(run_story.WINDOW + 5):
        walk.save("find_order", {"mailed": True}, "find_order", took=0)
    client = signed_in(bob(team))
    newest = client.get(f"/runs/{walk.run.pk}/").content.decode()
    assert newest.count("data-pick") == run_story.WINDOW + 2
    assert "?before=7" in newest
    older = client.get(f"/runs/{walk.run.pk}/?before=7").content.decode()
    assert f'href="/runs/{walk.run.pk}/?at=1#inspect"' in older
    assert "not yet" not in said(older)


def lived(turns: int) -> Walk:
    """A run of which there is all to tell: effects, notes, failures, gates, rewinds, what was reused, and forks."""
    team = make_team()
    walk = begin(team, started_by=bob(team))
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


def test_a_forks_page_asks_no_more_than_its_origins() -> None:
    walk = lived(2)
    fork = Run.objects.filter(lineage=walk.run.pk).latest("pk")
    client = signed_in(bob(walk.run.team))
    with sent() as statements:
        page = client.get(f"/runs/{fork.pk}/").content.decode()
    assert f"2 of R-{walk.run.pk}" in said(page) or f"R-{walk.run.pk}, checkpoint 2" in said(page)
    assert len(statements) <= MOST, statements


def test_where_an_output_was_taken_from_is_looked_for_near_by_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = begin(team := make_team())
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    for _ in range(3):
        walk.save("find_order", {"mailed": True}, "find_order", took=0)
    walk.save("propose", {"proposal": PROPOSAL}, "propose", kind="reused")
    run, client = walk.fresh(), signed_in(bob(team))
    assert "reused from 2" in said(client.get(f"/runs/{run.pk}/").content.decode())
    assert "reused from 2" in said(client.get(f"/runs/{run.pk}/?before=7").content.decode())
    fork = store.fork(Checkpoint.objects.get(run=run, seq=1).pk, by=actors.SYSTEM, title="Fork")
    other = Walk(fork)
    other.save("propose", {"proposal": PROPOSAL}, "propose", kind="reused")
    assert f"reused from 2 of R-{run.pk}" in said(client.get(f"/runs/{fork.pk}/").content.decode())
    monkeypatch.setattr(run_story, "TWINS", 3)
    page = said(client.get(f"/runs/{run.pk}/").content.decode())
    assert "reused" in page
    assert "reused from" not in page
    monkeypatch.setattr(run_story, "TWIN_RUNS", 1)
    assert "reused from" not in said(client.get(f"/runs/{fork.pk}/").content.decode())


def test_the_newest_effects_are_drawn_and_all_of_them_on_demand() -> None:
    team = make_team()
    walk = begin(team)
    for turn in range(run_story.WINDOW):
        walk.effect("pay", input_digest=turn.to_bytes(32))
        walk.save("pay", {"payment": {"id": f"p{turn}"}}, "pay")
    run = walk.release("queued")
    client = signed_in(bob(team))
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert f"the newest of {run_story.WINDOW}" not in said(page)  # as many as are drawn
    walk.go_on()
    walk.effect("pay", input_digest=b"\1" * 32)
    run = walk.release("queued")
    assert f"the newest of {run_story.WINDOW + 1}" in said(client.get(f"/runs/{run.pk}/").content.decode())
    everything = client.get(f"/runs/{run.pk}/?all=1").content.decode()
    assert everything.count('<tr data-status="done"') == run_story.WINDOW + 1
    assert f'<td><a href="/runs/{run.pk}/?at=2#inspect">2</a></td>' in everything
