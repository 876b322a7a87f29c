"""The audit's page: who sees which events, filtered and searched; what people wrote is erased unless a hold stands."""

from __future__ import annotations

import json
import re
from zoneinfo import ZoneInfo

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User

from approvals.audit import erasing
from checkpoints.actors import SYSTEM, Actor
from checkpoints.events import event_log
from checkpoints.models import Event, EventText, Run
from checkpoints.models.seal import Verification
from checkpoints.runs import holds
from tests.checkpoints.audit.sealed_events import found, say, seal_all
from tests.factories import ann, bob, decide, eve, make_card, make_gate, make_run, make_team, make_user, unique
from tests.harness import racing_threads
from tests.harness.signed_in_clients import signed_in

AUDITOR = ("checkpoints.view_audit",)
ERASER = ("checkpoints.view_audit", "checkpoints.erase_text")


def page(user: User, query: str = "") -> str:
    answer = signed_in(user).get(f"/audit/{query}")
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def shown(user: User, query: str = "") -> list[int]:
    """The events on the page, from the top."""
    return [int(number) for number in re.findall(r'id="event-(\d+)"', page(user, query))]


def test_a_member_sees_the_events_of_the_own_teams_and_an_auditor_no_titles_of_runs() -> None:
    team, other = make_team(), make_team()
    mine = [say(team=team.pk).pk for _ in range(3)]
    say(team=other.pk)
    say()
    assert shown(ann(team)) == mine[::-1]
    team = make_team(may=())
    gate = make_gate(team=team, card=make_card(title="Refund to Marit"))
    auditor = make_user("Olga Auditor", team, may=AUDITOR)
    said = page(auditor)
    assert f"gate {gate.pk}" in said
    assert "Refund to Marit" not in said
    assert f'href="/gates/{gate.pk}/"' not in said
    assert "Verify the seals" in said


def test_staff_with_the_permission_see_every_event_and_others_of_the_staff_none() -> None:
    nobodys = say()
    sees = ("checkpoints.view_event",)
    for person in (make_user("Sam Staff", may=sees, staff=True), make_user("Root", superuser=True)):
        assert nobodys.pk in shown(person)
    for person in (make_user("Stan Staff", staff=True), make_user("Una", may=sees)):
        assert signed_in(person).get("/audit/").status_code == 404


def test_an_event_is_one_sentence_with_what_it_is_about_and_the_exact_data() -> None:
    team = make_team()
    gate = make_gate(team=team, card=make_card(title="Refund to Marit"))
    decide(gate, bob(team), comment="Looks <b>right</b>")
    said = page(ann(team), f"?subject=gate:{gate.pk}&kind=gate.decided")
    assert "Bob Lindqvist</bdi></b> <bdi>approved “Review”</bdi>" in said
    assert f'<a href="/gates/{gate.pk}/"><bdi>Refund to Marit</bdi></a>' in said
    assert f'<a href="/runs/{gate.run_id}/">R-{gate.run_id}</a>' in said
    assert "Looks &lt;b&gt;right&lt;/b&gt;" in said
    assert "&quot;quorum&quot;" in said


def test_filters_leave_the_others_out_and_what_is_none_is_refused() -> None:
    team = make_team()
    gate = make_gate(team=team)
    bobs = bob(team)
    decide(gate, bobs)
    events = {event.kind: event for event in Event.objects.filter(run_id=gate.run_id)}
    user = ann(team)
    assert shown(user, "?kind=gate.opened") == [events["gate.opened"].pk]
    assert set(shown(user, "?kind=gate.")) == {event.pk for kind, event in events.items() if kind.startswith("gate.")}
    assert shown(user, f"?actor=user:{bobs.pk}&kind=gate.decided") == [events["gate.decided"].pk]
    of_run = set(shown(user)) - set(shown(user, "?kind=policy."))
    assert set(shown(user, f"?run=R-{gate.run_id}")) == set(shown(user, f"?run={gate.run_id}")) == of_run
    assert shown(user, f"?run={gate.run_id + 1000000}") == []
    assert set(shown(user, f"?agent={gate.run.plan.agent}")) == of_run
    assert shown(user, "?agent=nobody") == []
    assert set(shown(user, f"?team={team.pk}")) == set(shown(user))
    assert shown(user, f"?team={make_team().pk}") == []
    client = signed_in(ann(make_team()))
    for query in ("?run=seven", "?team=x", "?since=yesterday", "?until=2026-13-45T00:00"):
        answer = client.get(f"/audit/{query}")
        assert answer.status_code == 400
        assert "; write" in answer.content.decode()


def test_times_are_those_of_the_readers_zone() -> None:
    team = make_team()
    event = say(team=team.pk)
    there = event.at.astimezone(ZoneInfo("Asia/Tokyo"))
    minute = there.strftime("%Y-%m-%dT%H:%M")
    user = ann(team)
    assert shown(user, f"?zone=Asia/Tokyo&since={minute}") == [event.pk]
    assert shown(user, f"?zone=Asia/Tokyo&until={minute}") == []
    assert shown(user, f"?since={minute}") == []
    assert shown(user, f"?zone=No/Where&until={minute}") == [event.pk]


def test_words_are_found_in_names_kinds_data_and_in_what_people_wrote() -> None:
    team = make_team()
    word = unique("zebra").replace("-", "")
    user = ann(team)
    by_text = say(f"The {word.upper()} is late; grüße", team=team.pk)
    by_data = say(team=team.pk, step=word)
    by_name = unique("quagga")
    event_log.record("test.said", subject="test:1", by=Actor("user:1", by_name), team_id=team.pk)
    assert set(shown(user, f"?words={word}")) == {by_text.pk, by_data.pk}
    assert shown(user, f"?words={word[:-2]} late") == [by_text.pk]
    assert shown(user, f"?words={word} GRÜSSE") == []
    assert shown(user, f"?words={word} GRÜßE") == [by_text.pk]
    assert len(shown(user, f"?words={by_name}")) == 1
    assert shown(user, "?words='%26|!():*\\") == shown(user)
    assert shown(ann(make_team()), f"?words={word}") == []


def test_pages_neither_repeat_nor_skip_and_never_move() -> None:
    team = make_team()
    events = [say(team=team.pk).pk for _ in range(60)]
    user = ann(team)
    first = page(user)
    (older,) = re.findall(r'href="/audit/(\?before=[^"]+)"', first)
    say(team=team.pk)
    read = [int(number) for number in re.findall(r'id="event-(\d+)"', first)] + shown(user, older)
    assert read == events[::-1]


def test_what_came_since_is_counted_and_nothing_else() -> None:
    team = make_team()
    say(team=team.pk)
    user = ann(team)
    (news,) = re.findall(r'hx-get="(/audit/news/\?[^"]+)"', page(user, "?kind=test.said"))
    news = news.replace("&amp;", "&")
    assert " new</a>" not in signed_in(user).get(news).content.decode()
    say(team=team.pk)
    say(team=team.pk)
    say()
    make_gate(team=team)
    assert "2 new</a>" in signed_in(user).get(news).content.decode()


def test_a_text_is_erased_by_who_may_with_a_reason_and_everything_still_verifies() -> None:
    team = make_team()
    event = say("a secret", team=team.pk)
    seal_all()
    eraser = make_user("Erik Eraser", team, may=ERASER)
    address = f"/audit/events/{event.pk}/erasures/"
    assert signed_in(ann(team)).post(address, {"reason": "asked"}).status_code == 403
    assert signed_in(eve()).post(address, {"reason": "asked"}).status_code == 404
    assert signed_in(make_user("Olga", make_team(may=()), may=ERASER)).post(address, {"reason": "x"}).status_code == 404
    assert signed_in(eraser).post(address, {"reason": " "}).status_code == 422
    assert EventText.objects.filter(pk=event.pk).exists()
    assert "Erase it for good" in page(eraser)
    assert "Erase it for good" not in page(ann(team))
    assert signed_in(eraser).post(address, {"reason": "Marit asked for it"}).status_code == 302
    assert not EventText.objects.filter(pk=event.pk).exists()
    told = Event.objects.get(kind="text.erased", subject=f"event:{event.pk}")
    assert (told.actor, told.team_id) == (f"user:{eraser.pk}", team.pk)
    assert bytes(told.words.text) == b"Marit asked for it"
    assert "The text was erased." in page(ann(team), f"?subject={event.subject}")
    assert signed_in(eraser).post(address, {"reason": "again"}).status_code == 409
    seal_all()
    assert found() == []


def test_an_export_by_the_page_needs_the_right_and_holds_the_audited_teams_alone(web: str) -> None:
    team, other = make_team(may=()), make_team()
    mine, seen, _nobodys = say(team=team.pk), say(team=other.pk), say()
    auditor = make_user("Olga Auditor", team, other)
    team.permissions.set([Permission.objects.get(codename="view_audit")])
    seal_all()
    client = signed_in(auditor)
    assert set(shown(auditor)) == {mine.pk, seen.pk}
    token = client.get("/audit/").cookies["csrftoken"].value
    jar = {"sessionid": client.cookies[settings.SESSION_COOKIE_NAME].value, "csrftoken": token}
    form = {"csrfmiddlewaretoken": token, "format": "jsonl"}
    answer = httpx.post(f"{web}/audit/exports/", data=form, cookies=jar, headers={"Origin": web})
    assert answer.status_code == 200, answer.text
    assert "attachment" in answer.headers["content-disposition"]
    said = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["event"] for line in said if "event" in line] == [mine.pk]
    assert said[-1]["end"]["events"] == 1
    told = Event.objects.filter(kind="audit.exported", actor=f"user:{auditor.pk}").get()
    assert json.loads(bytes(told.data))["count"] == 1


def test_a_verification_is_asked_for_once_however_often_the_button_is_pressed() -> None:
    team = make_team()
    auditor = make_user("Olga Auditor", team, may=AUDITOR)
    Verification.objects.underway().delete()
    client = signed_in(auditor)
    assert client.post("/audit/verifications/").status_code == 302
    assert client.post("/audit/verifications/").status_code == 302
    (asked,) = Verification.objects.underway()
    assert asked.by == f"user:{auditor.pk}"
    assert "Verifying for" in page(auditor)
    assert "Verify the seals</button>" not in page(auditor)
    asked.delete()


def told_of(run: Run) -> Event:
    """An event of a run, with a text."""
    by = Actor("user:7", "Ann")
    event_log.record("test.said", subject=f"run:{run.pk}", by=by, run=run, data={}, text="a secret")
    return Event.objects.filter(run_id=run.pk, kind="test.said").latest("pk")


def test_nothing_of_a_run_is_erased_while_a_legal_hold_stands_on_it() -> None:
    run = make_run(team=(team := make_team()))
    event, eraser = told_of(run), signed_in(make_user("Erik Eraser", team, may=ERASER))
    address = f"/audit/events/{event.pk}/erasures/"
    for seq in (None, 1):
        held = holds.hold(run, seq, "Lawsuit", by=SYSTEM)
        refused = eraser.post(address, {"reason": "asked"})
        assert refused.status_code == 409
        assert "This run has a legal hold" in refused.content.decode()
        assert EventText.objects.filter(pk=event.pk).exists()
        assert not Event.objects.filter(kind="text.erased", subject=f"event:{event.pk}").exists()
        holds.release(held, by=SYSTEM)
    assert eraser.post(address, {"reason": "asked"}).status_code == 302
    assert not EventText.objects.filter(pk=event.pk).exists()


def test_an_erasure_that_comes_while_a_hold_is_set_sees_it() -> None:
    run = make_run(team=(team := make_team()))
    event, user = told_of(run), make_user("Erik Eraser", team, may=ERASER)

    came = racing_threads.meet_lock(
        lambda: holds.hold(run, None, "Lawsuit", by=SYSTEM), lambda: erasing.erase(event, reason="asked", by=user)
    )
    assert isinstance(came, erasing.HeldByLaw)
    assert EventText.objects.filter(pk=event.pk).exists()


def test_the_reason_of_an_erasure_stays_and_what_it_leaves_is_said() -> None:
    """Whoever erased a text erased the reason after it; the audit has no other word of why."""
    run = make_run(team=(team := make_team()))
    event, eraser = told_of(run), make_user("Erik Eraser", team, may=ERASER)
    erasing.erase(event, reason="to hide what I wrote", by=eraser)
    order = Event.objects.get(kind="text.erased", subject=f"event:{event.pk}")
    with pytest.raises(erasing.ReasonStays):
        erasing.erase(order, reason="-", by=eraser)
    assert EventText.objects.filter(pk=order.pk).exists()
    page = signed_in(eraser).get("/audit/", {"kind": "text.erased"}).content.decode()
    assert "to hide what I wrote" in page
    assert "audit-erase" not in page
    told_of(run)
    page = signed_in(eraser).get("/audit/").content.decode()
    assert "Copies in decisions, outcomes, proposals and past exports remain." in page
