"""What happened in a run: of one family, by words, a page at a time, in the place where it is looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from agents.runs import activity
from agents.runs.activity import ActivityFilters
from approvals.audit.event_words import ROUTINE
from checkpoints import actors
from checkpoints.events import event_log
from checkpoints.models import Event, Run
from checkpoints.runs import notes
from tests.agents.pages.stored_histories import Walk, begin, held
from tests.agents.pages.test_live import open_run
from tests.agents.pages.test_run_page import text_of
from tests.factories import ann, bob, decide, make_team
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

NewPage = Callable[..., Page]


def lived() -> Run:
    """A run with an effect, a gate that was decided, checkpoints and a note."""
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


def kinds(run: Run, **asked: object) -> list[str]:
    return [each.kind for each in activity.page(run, ActivityFilters(**asked)).happenings]  # type: ignore[arg-type]


def test_each_family_tells_its_own() -> None:
    run = lived()
    assert set(kinds(run, family="decisions")) == {"gate.decided"}
    assert set(kinds(run, family="effects")) == {"effect.done"}
    assert {"gate.opened", "gate.decided", "gate.closed"} <= set(kinds(run, family="gates"))
    assert all(kind.startswith("gate.") for kind in kinds(run, family="gates"))
    assert {"gate.decided", "checkpoint.noted"} <= set(kinds(run, family="people"))
    assert "gate.opened" not in kinds(run, family="people")
    assert set(kinds(run, family="saves")) == {"checkpoint.saved"}
    assert not {"run.running", "checkpoint.saved"} & set(kinds(run))
    assert "run.running" in kinds(run, family="all")
    saves = activity.page(run, ActivityFilters("saves")).happenings
    assert [each.what.split()[2] for each in saves] == [str(seq) for seq in range(run.seq, 0, -1)]


def test_words_are_found_in_events_and_in_what_people_wrote_and_in_this_run_alone() -> None:
    run, other = lived(), lived()
    assert kinds(run, words="fine by") == ["gate.decided"]
    assert kinds(run, words="look order") == ["checkpoint.noted"]
    assert kinds(run, words="effect pay") == ["effect.done"]
    assert kinds(run, words="nothing of this") == []
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


def test_saves_go_back_by_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    run = lived()
    monkeypatch.setattr(activity, "PAGE", 2)
    first = activity.page(run, ActivityFilters("saves"))
    second = activity.page(run, ActivityFilters("saves", before=first.next))
    assert [each.what.split()[2] for each in [*first.happenings, *second.happenings]] == ["4", "3", "2", "1"]
    assert (first.next, second.next) == (3, 0)


def test_a_rare_kind_is_looked_for_a_stretch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    run = begin(make_team()).run
    many(run, 1, "effect.done")
    many(run, 12)
    monkeypatch.setattr(activity, "LOOKED", 5)
    page, before, turns = activity.page(run, ActivityFilters("effects")), 0, 0
    assert page.happenings == []
    while not page.happenings:
        assert 0 < page.next != before
        before, turns = page.next, turns + 1
        page = activity.page(run, ActivityFilters("effects", before=before))
    assert (turns, [each.kind for each in page.happenings]) == (2, ["effect.done"])
    assert activity.page(run, ActivityFilters("saves", "nothing")).next == 0


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


def test_events_are_picked_and_go_back_in_their_place_and_stay_live(new_page: NewPage) -> None:
    run = lived()
    many(run, activity.PAGE + 1)
    page = open_run(new_page, bob(run.team), run)
    page.evaluate("window.stays = true")
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


@pytest.mark.long
def test_events_are_picked_without_a_script(new_page: NewPage) -> None:
    run = lived()
    page = new_page(bob(run.team), java_script_enabled=False)
    page.goto(f"/runs/{run.pk}/")
    page.get_by_label("Which events").select_option("effects")
    page.locator("#events-sheet").get_by_role("button", name="Show").click()
    expect(page.locator("#events li")).to_have_count(1)
    expect(page.get_by_label("Which events")).to_have_value("effects")


@pytest.mark.examples
def test_the_events_page_is_accessible_and_never_wider_than_the_screen(new_page: NewPage) -> None:
    run = lived()
    page = new_page(bob(run.team))
    said = watched(page)
    for query in ("", "?family=effects&words=nothing", "?family=saves&before=3"):
        assert check_each_look(page, f"/runs/{run.pk}/events/{query}", said) == []
