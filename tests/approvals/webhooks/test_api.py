"""Webhooks over the API: what those who manage them may, and that they are not there for anybody else."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.models import Answer, TokenScope
from approvals.models import Delivery, Webhook
from approvals.models.webhook import MOST, TooManyWebhooks
from approvals.webhooks import outbox
from checkpoints.models import Event
from tests.agents.api.sent_requests import address, delivery, document, gate, operations, reader_of
from tests.agents.api.test_doors import refusal
from tests.checkpoints.store.test_claims import at_once
from tests.factories import ann, make_gate, make_team, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in

from .made_webhooks import make_delivery, make_webhook, of, sent
from .receiver import Receiver, status

MANAGE = ("approvals.manage_webhooks",)
URL = "https://hooks.example.com/holdpoint"
EACH = [(path, method) for path, method, _ in operations() if "/webhooks" in path]


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


def kinds(number: int) -> list[str]:
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
    assert (again["status"], again["message"]) == ("pending", opened.message)
    assert sent(opened) == "delivered"
    assert {got.id for got in receiver.got} == {opened.message}
    test = send(client, path + "/tests")
    assert (test.status_code, test.json()["kind"]) == (201, "webhook.test")
    assert client.get(test["Location"]).json() == test.json()


@pytest.mark.parametrize(("path", "method"), EACH)
@pytest.mark.parametrize("who", ["an outsider", "a reader of the team", "a manager of another team"])
def test_to_others_it_is_not_there(path: str, method: str, who: str) -> None:
    people = {
        "an outsider": lambda: make_user("Eve Marlow"),
        "a reader of the team": lambda: ann(gate().team),
        "a manager of another team": lambda: manager(make_team()),
    }
    client = signed_in(people[who]())
    before = kinds(delivery().webhook_id)
    answer = send(client, address(path), method, **({"url": URL, "team": gate().team.name} if "{" not in path else {}))
    if "{" in path:
        assert "you may not see it" in refusal(answer, 404)["detail"]
    elif method == "get":
        assert answer.json()["items"] == []
    else:
        why = "None of your teams has this name." if "another" in who else "the permission “manage the team's webhooks”"
        assert why in refusal(answer, 403)["detail"]
    assert kinds(delivery().webhook_id) == before
    assert Webhook.objects.filter(team=gate().team).count() == 1


@pytest.mark.parametrize(("path", "method"), EACH)
def test_nobody_gets_in_without_signing_in_and_nothing_is_ordered_without_the_sessions_token(
    path: str, method: str
) -> None:
    refusal(send(Client(), address(path), method), 401)
    if method == "post":
        client = Client(enforce_csrf_checks=True)
        client.cookies = signed_in(reader_of(path)).cookies
        assert "X-CSRFToken" in refusal(send(client, address(path), method), 403)["detail"]


@pytest.mark.parametrize("path", sorted({path for path, _ in EACH}))
def test_the_wrong_method_is_refused(path: str) -> None:
    right = {method.upper() for each, method in EACH if each == path}
    client = signed_in(reader_of(path))
    for method in ("put", "patch", "delete", "options"):
        answer = getattr(client, method)(address(path))
        refusal(answer, 405)
        assert set(answer["Allow"].split(", ")) - {"HEAD"} == right


@pytest.mark.parametrize(
    "url", ["http://hooks.example.com/", "https://10.0.0.1/", "https://a@hooks.example.com/", "x", ""]
)
def test_an_address_that_may_not_be_is_named_and_nothing_is_made(url: str, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    team = make_team()
    told = refusal(send(token_of(team), "/api/webhooks", url=url), 422)
    assert told["errors"][0]["parameter"] == "/url"
    assert not Webhook.objects.filter(team=team).exists()


def test_whoever_manages_several_teams_says_whose_gates_are_meant() -> None:
    one, two = make_team(), make_team()
    client = token_of(one, two)
    told = refusal(send(client, "/api/webhooks", url=URL), 422)
    assert one.name in told["detail"]
    assert made(client, team=two.name)["team"] == two.name
    bound = token_of(one, two, team=one)
    assert made(bound)["team"] == one.name, "a token for one team reaches no other"
    refusal(send(bound, "/api/webhooks", url=URL, team=two.name), 403)


class TestSentAgain:
    """The same key: done once, and the secret is kept nowhere."""

    def test_one_that_is_made_twice_under_its_key_is_made_once(self) -> None:
        team = make_team()
        client = token_of(team)
        first = send(client, "/api/webhooks", key="chat-1", url=URL)
        again = send(client, "/api/webhooks", key="chat-1", url=URL)
        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == {**first.json(), "secret": ""}
        assert (first["Location"], again["Idempotency-Replayed"]) == (again["Location"], "true")
        assert Webhook.objects.filter(team=team).count() == 1
        secret = first.json()["secret"].encode()
        assert len(secret) > 40
        assert not any(secret in bytes(row.body) for row in Answer.objects.all())
        refusal(send(client, "/api/webhooks", key="chat-1", url=URL + "/other"), 409)

    def test_a_rotation_too(self) -> None:
        webhook, _ = make_webhook()
        client = token_of(webhook.team)
        answers = [send(client, f"/api/webhooks/{webhook.pk}/rotations", key="r1").json() for _ in range(2)]
        assert [bool(each["secret"]) for each in answers] == [True, False]
        assert kinds(webhook.pk).count("webhook.rotated") == 1

    def test_a_refusal_leaves_the_key_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A webhook that was disabled while it was tested went on being refused for the key, also once enabled."""
        webhook, _ = make_webhook()
        client, path = token_of(webhook.team), f"/api/webhooks/{webhook.pk}/tests"
        with monkeypatch.context() as patched:
            patched.setattr(outbox, "test", lambda *args, **more: None)
            refusal(send(client, path, key="t1"), 409)
        assert send(client, path, key="t1").status_code == 201


def test_sending_to_one_that_is_disabled_says_what_to_do() -> None:
    one, _ = make_delivery()
    Delivery.objects.filter(pk=one.pk).give_up("timeout")
    one.webhook.disable(Webhook.Reason.BY_HAND)
    path = f"/api/webhooks/{one.webhook_id}/deliveries/{one.pk}/sendings"
    told = refusal(send(token_of(one.webhook.team), path), 409)
    assert "enablings" in told["detail"]


def test_the_scope_is_in_the_description() -> None:
    for path, method in EACH:
        assert {"token": ["webhooks:manage"]} in document()["paths"][path][method]["security"]


def test_a_team_has_so_many_webhooks_and_no_more() -> None:
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
    told = refusal(send(token_of(make_team()), "/api/webhooks", url=f"{URL}/{'x' * 2000}"), 422)
    assert [each["parameter"] for each in told["errors"]] == ["/url"]


def test_two_who_make_one_at_once_make_no_more_than_there_may_be() -> None:
    team = make_team()
    for _ in range(MOST - 1):
        make_webhook(team=team)

    got = at_once(4, lambda _: make_webhook(team=team))
    assert sorted(isinstance(each, TooManyWebhooks) for each in got) == [False, True, True, True]
