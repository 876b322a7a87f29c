"""The page of one's tokens: one is made and shown this once, listed, revoked; others' are not there."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.models import Token
from checkpoints.models import Event
from tests.factories import READER, ann, bob, eve, make_policy, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed, signed_in

SENT = re.compile(r"hp_[A-Za-z0-9_-]{43}")


def make(client: Client, **changes: Any) -> Any:
    form = {"name": "nightly export", "whose": "own", "team": "", "scopes": ["runs:read"], "days": "30"}
    return client.post("/tokens/issuances/", {"key": secrets.token_hex(16), **form, **changes})


def test_one_is_made_shown_this_once_and_opens_what_it_says() -> None:
    owner = ann(make_team())
    client = confirmed(owner)
    assert 'href="/tokens/"' in client.get("/").content.decode()
    assert '<a href="/tokens/" aria-current="page">' in client.get("/tokens/").content.decode()
    answer = make(client)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    [sent] = set(SENT.findall(answer.content.decode()))
    made = Token.objects.get(user=owner)
    assert (made.name, made.agent, made.team, made.scopes) == ("nightly export", "", None, ["runs:read"])
    assert timedelta(days=29) < made.expires_at - timezone.now() < timedelta(days=31)
    assert bearing(sent).get("/api/runs").status_code == 200
    assert bearing(sent).get("/api/gates").status_code == 403
    said = client.get("/tokens/").content.decode()
    assert sent not in said
    assert f"{made.hint}…" in said
    event = Event.objects.get(subject=made.subject)
    assert (event.kind, event.actor) == ("token.created", f"user:{owner.pk}")
    assert sent.encode() not in bytes(event.data)


def test_an_agents_is_made_for_a_team_by_whoever_may_start_runs_there() -> None:
    owner = ann(team := make_team())
    make_policy(team, name="payouts")
    wanted = {"agent": "teller", "team": team.pk, "policy": "payouts", "scopes": ["runs:start", "runs:work"]}
    answer = make(confirmed(owner), whose="agent", **wanted)
    assert answer.status_code == 200
    made = Token.objects.get(user=owner)
    assert (made.agent, made.team, made.scopes) == ("teller", team, ["runs:start", "runs:work"])
    assert made.policy == "payouts"
    said = signed_in(owner).get("/tokens/").content.decode()
    assert "teller" in said
    assert "Work on external runs: save checkpoints, open gates, report effects" in said
    assert team.name in said
    assert "under the policy payouts only" in said
    reader = bob(make_team(may=READER))
    client = confirmed(reader)
    page = client.get("/tokens/").content.decode()
    assert 'name="whose"' not in page
    assert "You need the permission “start runs” in one of your teams." in page
    assert make(client, whose="agent", agent="teller", team=reader.groups.get().pk).status_code == 422


def test_what_cannot_be_made_says_why_and_keeps_what_was_entered() -> None:
    owner = ann(team := make_team())
    client, agents = signed_in(owner), {"whose": "agent", "agent": "teller"}
    faults: list[tuple[dict[str, Any], str]] = [
        ({"scopes": []}, "needs scopes"),
        ({"scopes": ["runs:read", "\0"]}, "no scopes \ufffd"),
        ({"name": " "}, "needs a name"),
        ({"days": "9" * 400}, "lasts between"),
        ({"whose": "agent", "agent": "tell er"}, "plain letters"),
        ({**agents, "scopes": ["gates:decide"]}, "cannot have gates:decide"),
        (agents, "needs a team"),
        ({**agents, "team": team.pk, "policy": "none"}, "has no policy none"),
        ({"team": "x"}, "Choose a team"),
        ({"team": make_team().pk}, "Choose a team"),
    ]
    for changes, said in faults:
        answer = make(client, **{"name": "my\0 export", **changes})
        page = answer.content.decode()
        assert (answer.status_code, said in page, "No token was made." in page) == (422, True, True), said
        assert SENT.search(page) is None
        assert ('value="my\ufffd export"' in page) == ("name" not in changes)
    assert not Token.objects.filter(user=owner).exists()


def test_nobody_makes_one_by_a_session_alone() -> None:
    """Whoever came by a session for a minute had made a token for a year."""
    owner = make_user("Ann Okafor", make_team(), password="open sesame again")
    client = signed_in(owner)
    assert "You will confirm who you are" in client.get("/tokens/").content.decode()
    asked = make(client, scopes=["runs:read", "gates:read"], name="for & me")
    assert asked.status_code == 303
    assert asked["Location"].startswith("/accounts/reauthenticate/?next=%2Ftokens%2F%3F")
    assert not Token.objects.filter(user=owner).exists()
    form = client.get(asked["Location"])
    back = client.post(
        "/accounts/reauthenticate/",
        {"password": "open sesame again", "next": form.context["redirect_field_value"]},
        follow=True,
    ).content.decode()
    assert 'value="for &amp; me"' in back
    assert re.findall(r'name="scopes" value="([^"]+)" checked', back) == ["runs:read", "gates:read"]
    assert "You confirmed who you are" in back
    assert make(client).status_code == 200
    assert Token.objects.filter(user=owner).count() == 1


def test_the_answer_loaded_again_makes_no_second_one() -> None:
    """Reloading the page that showed a token sent the form again and made another."""
    owner = ann(make_team())
    client, key = confirmed(owner), secrets.token_hex(16)
    assert make(client, key=key, name=" ").status_code == 422
    assert make(client, key="guessed").status_code == 422
    assert make(client, key=key).status_code == 200, "mended, with its key"
    again = make(client, key=key)
    assert again.status_code == 409
    page = again.content.decode()
    assert "This form made a token before" in page
    assert SENT.search(page) is None
    assert Token.objects.filter(user=owner).count() == 1
    other = confirmed(ann(make_team()))
    assert make(other, key=key).status_code == 200  # another person's form of the same key is none of theirs


def test_the_form_sent_twice_at_once_makes_one() -> None:
    owner = ann(make_team())
    clients, key = [confirmed(owner) for _ in range(4)], secrets.token_hex(16)
    answers = race([lambda client=client: make(client, key=key) for client in clients])  # type: ignore[misc]
    assert sorted(each.status_code for each in answers) == [200, 409, 409, 409]
    assert Token.objects.filter(user=owner).count() == 1


def test_a_revoked_one_opens_nothing_and_an_expired_one_says_so() -> None:
    owner = ann(make_team())
    client = signed_in(owner)
    token, sent = make_token(owner)
    old, _ = make_token(owner, name="old one")
    long_ago = timezone.now() - timedelta(days=9)
    Token.objects.filter(pk=old.pk).update(created_at=long_ago, expires_at=long_ago + timedelta(days=1))
    for _ in range(2):
        answer = client.post(f"/tokens/{token.pk}/revocations/")
        assert (answer.status_code, answer["Location"]) == (302, "/tokens/")
    assert bearing(sent).get("/api/runs").status_code == 401
    assert Event.objects.filter(subject=token.subject, kind="token.revoked", actor=f"user:{owner.pk}").count() == 1
    said = client.get("/tokens/").content.decode()
    assert re.findall(r'data-state="(\w+)"', said) == ["expired", "revoked"]
    assert "/revocations/" not in said


def test_others_tokens_are_not_there() -> None:
    team = make_team()
    token, sent = make_token(ann(team))
    for other in (bob(team), eve(), make_user("Root", superuser=True)):
        client = signed_in(other)
        assert client.post(f"/tokens/{token.pk}/revocations/").status_code == 404
        assert token.hint not in client.get("/tokens/").content.decode()
    assert bearing(sent).get("/api/runs").status_code == 200


def staff(team: Group, *names: str) -> Client:
    user = make_user("Olga Operator", team)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return signed_in(user)


def test_in_the_administration_those_who_may_revoke_any() -> None:
    team = make_team()
    token, sent = make_token(ann(team))
    order = reverse("admin:agents_token_revocations", args=[token.pk])
    change = reverse("admin:agents_token_change", args=[token.pk])
    looks = staff(team, "view_event")
    assert looks.post(order).status_code == 403
    assert order not in looks.get(change).content.decode()
    assert staff(team, "change_token").post(order).status_code == 403
    assert signed_in(bob(team)).post(order).status_code == 302
    may = staff(team, "view_event", "change_token")
    assert may.get(order).status_code == 405
    assert bearing(sent).get("/api/runs").status_code == 200
    assert order in may.get(change).content.decode()
    assert "is revoked" in may.post(order, follow=True).content.decode()
    assert "already been revoked" in may.post(order, follow=True).content.decode()
    assert order not in may.get(change).content.decode()
    assert bearing(sent).get("/api/runs").status_code == 401
