"""What people note on a checkpoint: said once, kept beside it, taken back by nobody else."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import Group, User
from playwright.sync_api import expect

from checkpoints import actors
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint
from checkpoints.models import Checkpoint, Event, EventText, Run
from checkpoints.runs import notes
from tests.agents.pages.stored_histories import ORDER, begin
from tests.agents.pages.test_live import NewPage, open_run
from tests.agents.pages.test_run_page import page_of, text_of
from tests.checkpoints.audit.sealed_events import erase
from tests.checkpoints.retention.pruned_runs import ended, keep, pruned
from tests.factories import READER, ann, bob, eve, make_team, make_user
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in


def saved(team: Group) -> Run:
    """A run of two checkpoints."""
    walk = begin(team)
    walk.save("find_order", {"order": ORDER}, "propose")
    return walk.fresh()


def say(user: User, run: Run, text: str, key: str = "k1", seq: int = 2, **headers: Any) -> Any:
    return signed_in(user).post(f"/runs/{run.pk}/checkpoints/{seq}/notes/", {"text": text, "key": key}, **headers)


def take_back(user: User, run: Run, note: int, seq: int = 2) -> Any:
    return signed_in(user).post(f"/runs/{run.pk}/checkpoints/{seq}/notes/{note}/removals/")


def told(run: Run, kind: str = notes.NOTED) -> list[Event]:
    return list(Event.objects.filter(run_id=run.pk, kind=kind).order_by("pk"))


def standing(run: Run, seq: int = 2) -> list[str | None]:
    return [each.text for each in notes.standing(notes.of_checkpoint(Checkpoint.objects.get(run=run, seq=seq).pk))]


def test_a_note_stands_beside_its_checkpoint_with_who_and_its_words_can_be_erased() -> None:
    run = saved(team := make_team(may=READER))
    reader = make_user("Rita Reader", team)
    answer = say(reader, run, "Is this the <b>right</b> order?\r\nI think not.")
    assert (answer.status_code, answer["Location"]) == (303, f"/runs/{run.pk}/?at=2#notes")
    (event,) = told(run)
    assert b"order" not in bytes(event.data)
    assert bytes(EventText.objects.get(event=event).text) == b"Is this the <b>right</b> order?\nI think not."
    for query in ("?at=2", "", "?at=2&view=state", "checkpoints/2/"):
        html = page_of(run, bob(team), query)
        listed = html.partition('id="notes-list"')[2].partition("</section>")[0]
        assert "Is this the &lt;b&gt;right&lt;/b&gt; order?" in listed, query
        assert "Rita Reader" in listed
        assert "Remove" not in listed  # somebody else's
    html = page_of(run, bob(team), "?at=1")
    assert "right" not in html.partition('id="notes-list"')[2].partition("</section>")[0]
    assert len(re.findall(r"\b1 note\s*<", html)) == 1  # on the row of checkpoint 2
    erase(event)
    assert "These words were erased." in page_of(run, bob(team), "?at=2")


def test_the_newest_is_last_and_the_row_has_the_count() -> None:
    run = saved(team := make_team())
    for number in range(3):
        say(ann(team), run, f"Words {number}", key=f"k{number}")
    html = page_of(run, bob(team), "?at=2")
    listed = html.partition('id="notes-list"')[2].partition("</section>")[0]
    assert listed.index("Words 0") < listed.index("Words 1") < listed.index("Words 2")
    assert re.search(r"\b3 notes\s*<", html)


def test_the_same_form_twice_is_one_note_also_at_one_moment() -> None:
    run = saved(team := make_team())
    writer, other = ann(team), bob(team)
    say(writer, run, "Once")
    assert say(writer, run, "Once").status_code == 303
    by = actors.of_user(writer)
    found = race([lambda: notes.note(run, 2, "Raced", key="k2", by=by)] * 4)
    assert sorted(map(str, found)) == ["False", "False", "False", "True"]
    say(other, run, "Another's form may have the same key", key="k2")
    assert standing(run) == ["Once", "Raced", "Another's form may have the same key"]


def test_what_cannot_be_a_note_is_refused_with_what_was_typed() -> None:
    run = saved(team := make_team())
    for text, why in (("", "Write something"), (" \n ", "Write something"), ("x" * 4001, "at most 4,000")):
        answer = say(ann(team), run, text)
        assert answer.status_code == 422
        assert why in text_of(answer.content.decode())
        assert text in answer.content.decode()
    assert say(ann(team), run, "No key", key="").status_code == 422
    assert say(ann(team), run, "x", seq=9).status_code == 404
    assert say(eve(), run, "Me too").status_code == 404
    assert told(run) == []
    for number in range(notes.MOST):
        assert notes.note(run, 2, "x" * 4000, key=str(number), by=actors.SYSTEM)
    assert say(ann(team), run, "One more").status_code == 422


def test_a_note_is_taken_back_by_its_author_alone_once_and_the_events_keep_it() -> None:
    run = saved(team := make_team())
    say(ann(team), run, "Mine")
    (event,) = told(run)
    assert take_back(bob(team), run, event.pk).status_code == 403
    assert take_back(eve(), run, event.pk).status_code == 404
    assert take_back(ann(team), run, event.pk, seq=1).status_code == 303  # not on that checkpoint
    assert standing(run) == ["Mine"]
    by = actors.Actor(event.actor, event.actor_name)
    assert sorted(race([lambda: notes.take_back(run, 2, event.pk, by=by)] * 3)) == [False, False, True]
    assert standing(run) == []
    assert len(told(run, notes.REMOVED)) == 1
    html = page_of(run, bob(team), "?at=2")
    assert not re.search(r"\b1 note\s*<", html)
    assert "Mine" not in html.partition('id="notes-list"')[2].partition("</section>")[0]
    assert "removed a note from checkpoint 2" in text_of(html)
    assert EventText.objects.filter(event=event).exists()


def test_what_is_gone_takes_no_note() -> None:
    run = ended(60)
    Run.objects.filter(pk=run.pk).update(team=(team := make_team()))
    keep(run, keep_last=5)
    pruned()
    assert say(ann(team), run, "Too late", seq=7).status_code == 410
    found = race([lambda: notes.note(run, 7, "Too late", key="k", by=actors.SYSTEM)])
    assert isinstance(found[0], CheckpointRemoved)
    found = race([lambda: notes.note(run, 99, "Too early", key="k", by=actors.SYSTEM)])
    assert isinstance(found[0], NoSuchCheckpoint)
    assert told(run) == []


def test_a_note_appears_for_whoever_looks_and_what_they_type_stays(new_page: NewPage) -> None:
    run = saved(team := make_team())
    page = open_run(new_page, bob(team), run, "?at=2")
    page.locator("#note-text").fill("Half a thought")
    notes.note(run, 2, "Look at the order", key="k", by=actors.of_user(ann(team)))
    expect(page.locator("#notes-list")).to_contain_text("Look at the order")
    expect(page.locator("#cp-" + Checkpoint.objects.get(run=run, seq=2).pk.hex)).to_contain_text("1 note")
    expect(page.locator("#note-text")).to_have_value("Half a thought")
    page.locator("#note-it button").click()
    expect(page.locator("#notes-list")).to_contain_text("Half a thought")
    expect(page.locator("#note-text")).to_have_value("")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#notes-list")).not_to_contain_text("Half a thought")
    assert standing(run) == ["Look at the order"]


def test_notes_work_without_a_script(new_page: NewPage) -> None:
    run = saved(team := make_team())
    page = new_page(bob(team), java_script_enabled=False)
    page.goto(f"/runs/{run.pk}/?at=2")
    page.locator("#note-text").fill("By hand")
    page.locator("#note-it button").click()
    expect(page.locator("#notes-list")).to_contain_text("By hand")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#notes-list")).not_to_contain_text("By hand")
