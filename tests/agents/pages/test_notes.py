"""What people note on a checkpoint, and what happened in a run: of one family, by words, a page at a time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from playwright.sync_api import expect

from agents.runs import activity
from agents.runs.activity import ActivityFilters
from approvals.audit.event_words import ROUTINE
from checkpoints import actors
from checkpoints.errors import CheckpointRemoved, NoSuchCheckpoint
from checkpoints.events import event_log
from checkpoints.models import Checkpoint, Event, EventText, Run
from checkpoints.runs import notes
from tests.agents.pages.stored_histories import ORDER, Walk, begin, held
from tests.agents.pages.test_run_page import NewPage, open_run, page_of, text_of
from tests.checkpoints.audit.sealed_events import erase
from tests.checkpoints.retention.pruned_runs import ended, keep, pruned
from tests.factories import READER, ann, bob, decide, eve, make_team, make_user
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in


def saved(team: Group) -> Run:
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
    html = page_of(run, bob(team), "?at=2")
    listed = html.partition('id="notes-list"')[2].partition("</section>")[0]
    assert listed.index("Once") < listed.index("Raced") < listed.index("Another")
    assert re.search(r"\b3 notes\s*<", html)


def test_what_cannot_be_a_note_is_refused_with_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(notes, "MOST", 1)
    assert notes.note(run, 2, "x" * 4000, key="k2", by=actors.SYSTEM)
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
    run = ended(10)
    Run.objects.filter(pk=run.pk).update(team=(team := make_team()))
    keep(run, keep_last=2)
    pruned()
    assert say(ann(team), run, "Too late", seq=4).status_code == 410
    found = race([lambda: notes.note(run, 4, "Too late", key="k", by=actors.SYSTEM)])
    assert isinstance(found[0], CheckpointRemoved)
    found = race([lambda: notes.note(run, 99, "Too early", key="k", by=actors.SYSTEM)])
    assert isinstance(found[0], NoSuchCheckpoint)
    assert told(run) == []


def lived() -> Run:
    gate = held(make_team())
    decide(gate, bob(gate.team), comment="Fine by me.")
    run = gate.run
    walk = Walk(run)
    walk.save("review", {}, "pay", kind="gate")
    walk.effect("pay")
    run.refresh_from_db()
    notes.note(run, 2, "Look at the order", key="k", by=actors.of_user(ann(gate.team)))
    return run


def many(run: Run, count: int, kind: str = "test.said") -> None:
    for number in range(count):
        event_log.record(kind, subject=f"run:{run.pk}", by=actors.SYSTEM, run=run, data={"step": f"s{number}"})


def kinds_of(run: Run, **asked: object) -> list[str]:
    return [each.kind for each in activity.page(run, ActivityFilters(**asked)).happenings]  # type: ignore[arg-type]


def test_each_family_tells_its_own() -> None:
    run = lived()
    assert set(kinds_of(run, family="decisions")) == {"gate.decided"}
    assert set(kinds_of(run, family="effects")) == {"effect.done"}
    assert {"gate.opened", "gate.decided", "gate.closed"} <= set(kinds_of(run, family="gates"))
    assert all(kind.startswith("gate.") for kind in kinds_of(run, family="gates"))
    assert {"gate.decided", "checkpoint.noted"} <= set(kinds_of(run, family="people"))
    assert "gate.opened" not in kinds_of(run, family="people")
    assert set(kinds_of(run, family="saves")) == {"checkpoint.saved"}
    assert not {"run.running", "checkpoint.saved"} & set(kinds_of(run))
    assert "run.running" in kinds_of(run, family="all")
    saves = activity.page(run, ActivityFilters("saves")).happenings
    assert [each.what.split()[2] for each in saves] == [str(seq) for seq in range(run.seq, 0, -1)]


def test_words_are_found_in_events_and_in_what_people_wrote_and_in_this_run_alone() -> None:
    run, other = lived(), lived()
    assert kinds_of(run, words="fine by") == ["gate.decided"]
    assert kinds_of(run, words="look order") == ["checkpoint.noted"]
    assert kinds_of(run, words="effect pay") == ["effect.done"]
    assert kinds_of(run, words="nothing of this") == []
    assert {each.what for each in activity.page(run, ActivityFilters("saves", "propose")).happenings} == {
        "saved checkpoint 3 after “Propose”"
    }
    assert len(Event.objects.filter(run_id=other.pk, kind="checkpoint.noted")) == 1


def test_pages_go_back_without_a_gap_or_a_repeat() -> None:
    run = begin(make_team()).run
    many(run, 2 * activity.PAGE + 3)
    seen, before = list[str](), 0
    for _ in range(3):
        page = activity.page(run, ActivityFilters(before=before))
        seen += [each.kind + each.at.isoformat() for each in page.happenings]
        before = page.next
    assert before == 0
    assert (
        len(seen) == len(set(seen)) == Event.objects.sealable().filter(run_id=run.pk).exclude(kind__in=ROUTINE).count()
    )


def test_a_page_of_events_asks_little_and_junk_asks_for_nothing() -> None:
    run = lived()
    client = signed_in(bob(run.team))
    for query in ("", "?family=effects", "?family=saves&words=x", "?words=fine&before=999999999"):
        with sent() as statements:
            assert client.get(f"/runs/{run.pk}/events/{query}").status_code == 200
        assert len(statements) <= 12, statements
    plain = text_of(client.get(f"/runs/{run.pk}/events/?family=nonsense&before=-1&words=").content.decode())
    assert "Fine by me." in plain
    fragment = client.get(f"/runs/{run.pk}/events/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in fragment


def test_notes_and_events_come_to_whoever_looks_and_what_they_type_stays(new_page: NewPage) -> None:
    run = lived()
    many(run, activity.PAGE + 1)
    page = open_run(new_page, bob(run.team), run, "?at=2")
    page.evaluate("window.stays = true")
    page.locator("#note-text").fill("Half a thought")
    notes.note(run, 2, "And at the rest", key="k2", by=actors.of_user(ann(run.team)))
    expect(page.locator("#notes-list")).to_contain_text("And at the rest")
    expect(page.locator("#cp-" + Checkpoint.objects.get(run=run, seq=2).pk.hex)).to_contain_text("2 notes")
    events = page.locator("#events")
    expect(events.locator("li")).to_have_count(activity.PAGE)
    page.get_by_role("link", name="Earlier events").focus()
    page.keyboard.press("Enter")
    expect(events).to_contain_text("gate.opened")
    expect(page.locator("#events [role=status]")).to_contain_text("from")
    page.get_by_role("link", name="Newest").click()
    expect(events.locator("li")).to_have_count(activity.PAGE)
    page.get_by_label("Which events").select_option("effects")
    expect(page.locator("#events [role=status]")).to_contain_text("Effects, newest first")
    expect(events.locator("li")).to_have_count(1)
    page.get_by_label("Search events").fill("half typed")
    many(run, 1, "effect.unknown")
    expect(events.locator("li")).to_have_count(2)
    expect(page.get_by_label("Search events")).to_have_value("half typed")
    page.get_by_label("Search events").fill("unknown")
    page.keyboard.press("Enter")
    expect(events.locator("li")).to_have_count(1)
    assert page.evaluate("window.stays") is True
    expect(page.locator("#note-text")).to_have_value("Half a thought")
    page.locator("#note-it button").click()
    expect(page.locator("#notes-list")).to_contain_text("Half a thought")
    expect(page.locator("#note-text")).to_have_value("")
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#notes-list")).not_to_contain_text("Half a thought")
    assert standing(run) == ["Look at the order", "And at the rest"]
