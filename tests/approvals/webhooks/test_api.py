"""Webhooks over the API and in the administration: what those who manage them may, and that nobody else finds any."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from agents.models import Answer, TokenScope
from approvals.models import Message, Webhook
from approvals.models.webhook import MOST, TooManyWebhooks
from checkpoints.models import Event
from tests.agents.api.sent_requests import address, delivery, gate, operations, reader_of
from tests.agents.api.test_doors import refusal
from tests.factories import ann, make_gate, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import signed_in

from .made_webhooks import MANAGE, columns, make_delivery, make_webhook, of, operator, sent
from .receiver import Receiver, status

URL = "https://hooks.example.com/holdpoint"
ADDRESS = f"{URL}?key=private"
EACH = [(path, method) for path, method, _ in operations() if "/webhooks" in path]
ORDERS = ("disablings", "enablings", "removals", "tests", "rotations")


def manager(*teams: Group) -> User:
    return make_user("Olga Operator", *teams, may=MANAGE)


def token_of(*teams: Group, **more: Any) -> Client:
    """A program that comes by a token to manage webhooks, and by nothing else."""
    return bearing(make_token(manager(*teams), str(TokenScope.HOOKS), **more)[1])


def send(client: Client, path: str, method: str = "post", key: str = "", **body: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    if method == "get":
        return client.get(path)
    return client.post(path, body, content_type="application/json", headers=headers)


def made(client: Client, **body: Any) -> Any:
    answer = send(client, "/api/webhooks", **{"url": URL, **body})
    assert answer.status_code == 201, answer.content
    return answer.json()


def kinds(number: int | None) -> list[str]:
    return list(Event.objects.filter(subject=f"webhook:{number}").order_by("pk").values_list("kind", flat=True))


def test_a_webhook_from_its_making_to_its_removal() -> None:
    team = make_team()
    client = token_of(team)
    new = made(client, agent="refunds", purpose="The chat")
    path = f"/api/webhooks/{new['id']}"
    webhook = Webhook.objects.get(pk=new["id"])
    assert [new["secret"]] == webhook.secrets()
    assert client.get(path).json() == {name: value for name, value in new.items() if name != "secret"}
    assert [each["id"] for each in client.get("/api/webhooks").json()["items"]] == [new["id"]]
    assert send(client, path + "/disablings").json()["reason"] == "by_hand"
    refusal(send(client, path + "/tests"), 409)
    assert send(client, path + "/enablings").json()["status"] == "enabled"
    turned = send(client, path + "/rotations").json()
    assert webhook.secrets()[0] != turned["secret"], "the row in hand is as it was"
    assert Webhook.objects.get(pk=webhook.pk).secrets() == [turned["secret"], new["secret"]]
    assert send(client, path + "/removals").json()["status"] == "removed"
    refusal(client.get(path), 404)
    assert kinds(webhook.pk) == [f"webhook.{each}" for each in ("created", "disabled", "enabled", "rotated", "removed")]
    assert Event.objects.filter(subject=webhook.subject, actor__startswith="user:").count() == 5


def test_its_messages_and_each_attempt_and_sending_one_again(receiver: Receiver) -> None:
    receiver.answers.append(status(503))
    team = make_team()
    client = token_of(team)
    new = made(client, url=receiver.url)
    path = f"/api/webhooks/{new['id']}"
    [opened] = of(make_gate(team=team))
    assert [sent(opened), sent(opened)] == ["http_503", "delivered"]
    listed = client.get(path + "/deliveries").json()["items"]
    assert [(each["kind"], each["status"], each["attempts"]) for each in listed] == [("gate.opened", "delivered", 2)]
    assert client.get(path + "/deliveries?status=failed").json()["items"] == []
    read = client.get(f"{path}/deliveries/{opened.pk}")
    assert [(each["number"], each["result"], each["status"]) for each in read.json()["log"]] == [
        (2, "delivered", 204), (1, "http_503", 503),
    ]  # fmt: skip
    assert bytes(opened.body) in read.content
    again = send(client, f"{path}/deliveries/{opened.pk}/sendings").json()
    assert (again["status"], again["message"]) == ("pending", opened.name)
    assert sent(opened) == "delivered"
    test = send(client, path + "/tests")
    assert (test.status_code, test.json()["kind"]) == (201, "webhook.test")
    assert client.get(test["Location"]).json() == test.json()


@pytest.mark.parametrize("who", ["an outsider", "a reader of the team", "a manager of another team"])
def test_to_others_it_is_not_there(who: str) -> None:
    other = "another" in who
    person = manager(make_team()) if other else ann(gate().team) if "reader" in who else make_user("Eve Marlow")
    why = "None of your teams has this name." if other else "the permission “manage the team's webhooks”"
    client, before = signed_in(person), kinds(delivery().webhook_id)
    for path, method in EACH:
        body = {} if "{" in path else {"url": URL, "team": gate().team.name}
        answer = send(client, address(path), method, **body)
        if "{" in path:
            assert "you may not see it" in refusal(answer, 404)["detail"]
        elif method == "get":
            assert answer.json()["items"] == []
        else:
            assert why in refusal(answer, 403)["detail"]
    assert kinds(delivery().webhook_id) == before
    assert Webhook.objects.filter(team=gate().team).count() == 1


def test_nobody_gets_in_without_signing_in_or_the_sessions_token_or_by_the_wrong_method() -> None:
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in(reader_of(EACH[0][0])).cookies
    for path, method in EACH:
        refusal(send(Client(), address(path), method), 401)
        if method == "post":
            assert "X-CSRFToken" in refusal(send(client, address(path), method), 403)["detail"]
        answer = client.put(address(path))
        refusal(answer, 405)
        assert set(answer["Allow"].split(", ")) - {"HEAD"} == {verb.upper() for each, verb in EACH if each == path}


def test_whoever_manages_several_teams_says_whose_gates_are_meant() -> None:
    one, two = make_team(), make_team()
    client = token_of(one, two)
    told = refusal(send(client, "/api/webhooks", url=URL), 422)
    assert one.name in told["detail"]
    assert made(client, team=two.name)["team"] == two.name
    bound = token_of(one, two, team=one)
    assert made(bound)["team"] == one.name, "a token for one team reaches no other"
    refusal(send(bound, "/api/webhooks", url=URL, team=two.name), 403)


def test_what_is_sent_twice_under_its_key_is_done_once_and_its_secret_is_kept_nowhere() -> None:
    team = make_team()
    client = token_of(team)
    first, again = (send(client, "/api/webhooks", key="chat-1", url=URL) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == {**first.json(), "secret": ""}
    assert (first["Location"], again["Idempotency-Replayed"]) == (again["Location"], "true")
    webhook = Webhook.objects.get(team=team)
    secret = first.json()["secret"].encode()
    assert len(secret) > 40
    assert not any(secret in bytes(row.body) for row in Answer.objects.all())
    refusal(send(client, "/api/webhooks", key="chat-1", url=URL + "/other"), 409)
    turned = [send(client, f"/api/webhooks/{webhook.pk}/rotations", key="r1").json() for _ in range(2)]
    assert [bool(each["secret"]) for each in turned] == [True, False]
    assert kinds(webhook.pk).count("webhook.rotated") == 1


def test_a_team_has_so_many_webhooks_and_no_more(settings: Any) -> None:
    """Each gate is a message to every one of them, so that one manager could have the workers send without end."""
    team = make_team()
    client = token_of(team)
    for _ in range(MOST):
        make_webhook(team=team)
    told = refusal(send(client, "/api/webhooks", url=URL), 422)
    assert f"{team.name} has {MOST} webhooks, which is the most." in told["detail"]
    assert [each["parameter"] for each in told["errors"]] == ["/team"]
    first = Webhook.objects.filter(team=team).order_by("pk")[0]
    send(client, f"/api/webhooks/{first.pk}/removals")
    made(client)
    refusal(send(client, "/api/webhooks", url=URL), 422)
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    for url in ("https://10.0.0.1/", f"{URL}/{'x' * 2000}"):
        told = refusal(send(token_of(make_team()), "/api/webhooks", url=url), 422)
        assert [each["parameter"] for each in told["errors"]] == ["/url"]


def test_two_who_make_one_at_once_make_no_more_than_there_may_be() -> None:
    team = make_team()
    for _ in range(MOST - 1):
        make_webhook(team=team)
    got = race([lambda: make_webhook(team=team)] * 4)
    assert sorted(isinstance(each, TooManyWebhooks) for each in got) == [False, True, True, True]


def page(name: str, *numbers: int) -> str:
    return reverse(f"admin:approvals_{name}", args=numbers)


def test_one_is_made_and_its_secret_shown_this_once() -> None:
    team = make_team()
    client = operator(team)
    form = {"team": team.pk, "agent": "", "url": ADDRESS, "purpose": "Tell the chat"}
    answer = client.post(page("webhook_add"), form)
    webhook = Webhook.objects.get(team=team)
    [secret] = webhook.secrets()
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert secret in answer.content.decode()
    assert kinds(webhook.pk) == ["webhook.created"]
    for place in (page("webhook_change", webhook.pk), page("webhook_changelist")):
        assert secret not in client.get(place).content.decode()
    assert "private" not in client.get(page("webhook_changelist")).content.decode()
    event = Event.objects.get(subject=webhook.subject)
    assert b"private" not in bytes(event.data)


def test_orders_do_what_their_buttons_say(receiver: Receiver) -> None:
    webhook, old = make_webhook(receiver.url)
    client = operator(webhook.team)
    said = client.post(page("webhook_tests", webhook.pk), follow=True).content.decode()
    [test] = Message.objects.filter(webhook=webhook)
    assert str(test.name) in said
    assert sent(test) == "delivered"
    client.post(page("webhook_disablings", webhook.pk))
    webhook.refresh_from_db()
    assert (webhook.status, webhook.reason) == ("disabled", "by_hand")
    assert "Somebody disabled it" in client.get(page("webhook_change", webhook.pk)).content.decode()
    client.post(page("webhook_enablings", webhook.pk))
    rotated = client.post(page("webhook_rotations", webhook.pk))
    webhook.refresh_from_db()
    new, former = webhook.secrets()
    assert former == old
    assert new in rotated.content.decode()
    client.post(page("webhook_removals", webhook.pk))
    assert client.get(page("webhook_change", webhook.pk)).status_code == 404
    told = ("created", "tested", "disabled", "enabled", "rotated", "removed")
    assert kinds(webhook.pk) == [f"webhook.{each}" for each in told]


def test_the_log_shows_each_attempt_and_sends_again_by_order(receiver: Receiver) -> None:
    receiver.answers.extend([status(503), status(410)])
    delivery, _ = make_delivery(receiver.url)
    sent(delivery), sent(delivery)
    client = operator(delivery.webhook.team)
    shown = client.get(page("message_change", delivery.pk)).content.decode()
    for words in ("the server answered 503", "it takes no more messages", delivery.name, "webhook.test"):
        assert words in shown
    assert "Send it again" not in shown, "its webhook is disabled"
    client.post(page("webhook_enablings", delivery.webhook_id))
    assert "Send it again" in client.get(page("message_change", delivery.pk)).content.decode()
    client.post(page("message_sendings", delivery.pk))
    assert columns(delivery, "status") == ("pending",)
    assert sent(delivery) == "delivered"


@pytest.mark.parametrize("who", ["of another team", "without the permission", "who is no staff"])
def test_others_find_nothing_there(who: str) -> None:
    delivery, _ = make_delivery()
    webhook, hidden = delivery.webhook, 302 if who == "who is no staff" else 404
    user = make_user("Sam", webhook.team, may=MANAGE if hidden == 302 else ())
    User.objects.filter(pk=user.pk).update(is_staff=hidden == 404)
    client = operator(make_team()) if who == "of another team" else signed_in(user)
    for place in (page("webhook_change", webhook.pk), page("message_change", delivery.pk)):
        assert client.get(place).status_code == hidden, place
    for order in (*(page(f"webhook_{order}", webhook.pk) for order in ORDERS), page("message_sendings", delivery.pk)):
        assert client.post(order).status_code == hidden, order
    for listing in ("webhook_changelist", "message_changelist"):
        assert webhook.host not in client.get(page(listing)).content.decode()
    assert kinds(webhook.pk) == ["webhook.created", "webhook.tested"]


def test_an_order_is_a_post_and_nothing_is_changed_or_deleted_by_hand() -> None:
    delivery, _ = make_delivery()
    webhook = delivery.webhook.pk
    client = signed_in(make_user("Root", superuser=True))
    orders = [page(f"webhook_{order}", webhook) for order in ORDERS]
    for place in (*orders, page("message_sendings", delivery.pk)):
        assert client.get(place).status_code == 405
    by_hand = [page("webhook_change", webhook), page("webhook_delete", webhook), page("message_delete", delivery.pk)]
    for place in by_hand:
        assert client.post(place, {"url": "https://evil.example/", "post": "yes"}).status_code == 403
    assert kinds(webhook) == ["webhook.created", "webhook.tested"]


def test_what_may_not_be_is_refused_beside_its_field(settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    team = make_team()
    for _ in range(MOST):
        make_webhook(team=team)
    client, other = operator(team), make_team()
    answer = client.post(page("webhook_add"), {"team": team.pk, "agent": "", "url": ADDRESS, "purpose": ""})
    assert f"{team.name} has {MOST} webhooks, which is the most." in answer.content.decode()
    form = client.post(page("webhook_add"), {"team": other.pk, "url": "https://10.0.0.1/"}).content.decode()
    assert "Select a valid choice" in form, "a team that is not one's own"
    assert other.name not in form
    assert re.search(r'class="errorlist"[^>]*id="id_url_error"', form)
    assert Webhook.objects.filter(team=team).count() == MOST
