"""A run of many steps: told a window at a time, and no dearer to show than a short one."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.views import story
from tests.factories import bob, make_team
from tests.pages.clients import signed_in
from tests.run_pages.orders.forms import said
from tests.run_pages.walks import PROPOSAL, begin


def test_a_long_run_is_told_in_windows() -> None:
    team = make_team()
    walk = begin(team)
    for _ in range(story.WINDOW + 5):
        walk.save("find_order", {"mailed": True}, "find_order", took=0)
    client = signed_in(bob(team))
    newest = client.get(f"/runs/{walk.run.pk}/").content.decode()
    assert newest.count("data-pick") == story.WINDOW + 2
    assert "?before=7" in newest
    older = client.get(f"/runs/{walk.run.pk}/?before=7").content.decode()
    assert f'href="/runs/{walk.run.pk}/?at=1#inspect"' in older
    assert "not yet" not in said(older)


def test_a_page_asks_the_database_no_more_of_a_long_run() -> None:
    team = make_team()
    client = signed_in(bob(team))
    asked = []
    for turns in (1, story.WINDOW):
        walk = begin(team)
        for turn in range(turns):
            walk.save("propose", {"proposal": PROPOSAL | {"note": f"turn {turn}"}}, "pay", notes=["As asked."])
            walk.effect("pay", input_digest=turn.to_bytes(32))
            walk.save("pay", {"payment": {"id": f"p{turn}"}}, "propose")
        run = walk.release("queued")
        with CaptureQueriesContext(connection) as queries:
            page = client.get(f"/runs/{run.pk}/").content.decode()
        asked.append(len(queries))
    assert max(asked) <= 20, asked
    assert f"the newest of {story.WINDOW}" not in said(page)  # as many as are drawn
    walk.go_on()
    walk.effect("pay", input_digest=b"\1" * 32)
    run = walk.release("queued")
    assert f"the newest of {story.WINDOW + 1}" in said(client.get(f"/runs/{run.pk}/").content.decode())
    everything = client.get(f"/runs/{run.pk}/?all=1").content.decode()
    assert everything.count('<tr data-status="done"') == story.WINDOW + 1
    assert f'<td><a href="/runs/{run.pk}/?at=3#inspect">3</a></td>' in everything
