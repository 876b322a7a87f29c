"""Webhooks in the administration: made, given orders, and their log read, by those who manage the team's."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from approvals.models import Delivery, Webhook
from approvals.models.webhook import MOST
from approvals.webhooks import outbox
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.factories import make_gate, make_team, make_user
from tests.harness.signed_in_clients import signed_in

from .made_webhooks import columns, make_delivery, make_webhook, of, sent
from .receiver import Receiver, status

MANAGE = ("approvals.manage_webhooks",)
ORDERS = ("disablings", "enablings", "removals", "tests", "rotations")
ADDRESS = "https://hooks.example.com/holdpoint?key=private"


def operator(team: Group) -> Client:
    """Staff who manages the team's webhooks."""
    user = make_user("Olga Operator", team, may=MANAGE)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return signed_in(user)


def page(name: str, *numbers: int) -> str:
    return reverse(f"admin:approvals_{name}", args=numbers)


def kinds(webhook: Webhook) -> list[str]:
    return list(Event.objects.filter(subject=webhook.subject).order_by("pk").values_list("kind", flat=True))


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
    assert kinds(webhook) == ["webhook.created"]
    for address in (page("webhook_change", webhook.pk), page("webhook_changelist")):
        assert secret not in client.get(address).content.decode()
    assert "private" not in client.get(page("webhook_changelist")).content.decode()
    event = Event.objects.get(subject=webhook.subject)
    assert b"private" not in bytes(event.data)


def test_an_address_that_may_not_be_is_refused_beside_its_field(settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    team = make_team()
    client = operator(team)
    for url in ("http://hooks.example.com/", "https://10.0.0.1/", "https://ann:secret@hooks.example.com/"):
        answer = client.post(page("webhook_add"), {"team": team.pk, "url": url})
        assert answer.status_code == 200
        assert re.search(r'class="errorlist"[^>]*id="id_url_error"', answer.content.decode())
    assert not Webhook.objects.filter(team=team).exists()


def test_a_team_that_is_not_ones_own_cannot_be_chosen() -> None:
    mine, other = make_team(), make_team()
    client = operator(mine)
    answer = client.post(page("webhook_add"), {"team": other.pk, "url": ADDRESS})
    assert "Select a valid choice" in answer.content.decode()
    assert other.name not in client.get(page("webhook_add")).content.decode()


def test_orders_do_what_their_buttons_say(receiver: Receiver) -> None:
    webhook, old = make_webhook(receiver.url)
    client = operator(webhook.team)
    said = client.post(page("webhook_tests", webhook.pk), follow=True).content.decode()
    [test] = Delivery.objects.filter(webhook=webhook)
    assert test.message in said
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
    assert kinds(webhook) == [
        "webhook.created", "webhook.tested", "webhook.disabled", "webhook.enabled", "webhook.rotated",
        "webhook.removed",
    ]  # fmt: skip


def test_the_log_shows_each_attempt_and_sends_again_by_order(receiver: Receiver) -> None:
    receiver.answers.extend([status(503), status(410)])
    delivery, _ = make_delivery(receiver.url)
    sent(delivery), sent(delivery)
    client = operator(delivery.webhook.team)
    shown = client.get(page("delivery_change", delivery.pk)).content.decode()
    for words in ("The receiver answered 503.", "it accepts no more messages", delivery.message, "webhook.test"):
        assert words in shown
    assert "Send it again" not in shown, "its webhook is disabled"
    client.post(page("webhook_enablings", delivery.webhook_id))
    assert "Send it again" in client.get(page("delivery_change", delivery.pk)).content.decode()
    client.post(page("delivery_sendings", delivery.pk))
    assert columns(delivery, "status") == ("pending",)
    assert sent(delivery) == "delivered"


def test_the_log_is_filtered_by_webhook_and_status_and_searched_by_message_and_gate() -> None:
    team = make_team()
    one, two = make_webhook(team=team)[0], make_webhook(team=team)[0]
    gate = make_gate(team=team)
    first, second = of(gate)
    client, listing = operator(team), page("delivery_changelist")
    assert (first.webhook_id, second.webhook_id) == (one.pk, two.pk)

    def listed(**query: Any) -> set[int]:
        said = client.get(listing, query).content.decode()
        return {int(number) for number in re.findall(r"/approvals/delivery/(\d+)/change/", said)}

    assert listed() == {first.pk, second.pk}
    shown = client.get(page("delivery_change", first.pk)).content.decode()
    assert f'<a href="/gates/{gate.pk}/">gate {gate.pk}</a>' in shown  # not "open", which is a gate's status
    assert listed(webhook=one.pk) == {first.pk}
    assert listed(status__exact="failed") == set()
    assert listed(q=second.message) == {second.pk}
    assert listed(q=f"gate:{gate.pk}") == {first.pk, second.pk}


@pytest.mark.parametrize("who", ["of another team", "without the permission", "who is no staff"])
def test_others_find_nothing_there(who: str) -> None:
    delivery, _ = make_delivery()
    webhook = delivery.webhook
    if who == "of another team":
        client = operator(make_team())
    else:
        user = make_user("Sam", webhook.team, may=MANAGE if who == "who is no staff" else ())
        User.objects.filter(pk=user.pk).update(is_staff=who != "who is no staff")
        client = signed_in(user)
    hidden = {"of another team": 404, "without the permission": 404, "who is no staff": 302}[who]
    for address in (page("webhook_change", webhook.pk), page("delivery_change", delivery.pk)):
        assert client.get(address).status_code == hidden, address
    for order in ORDERS:
        assert client.post(page(f"webhook_{order}", webhook.pk)).status_code == hidden, order
    assert client.post(page("delivery_sendings", delivery.pk)).status_code == hidden
    for listing in ("webhook_changelist", "delivery_changelist"):
        assert webhook.host not in client.get(page(listing)).content.decode()
    assert kinds(webhook) == ["webhook.created", "webhook.tested"]


def test_an_order_is_a_post_and_nothing_is_changed_or_deleted_by_hand() -> None:
    delivery, _ = make_delivery()
    webhook = delivery.webhook
    client = signed_in(make_user("Root", superuser=True))
    for order in ORDERS:
        assert client.get(page(f"webhook_{order}", webhook.pk)).status_code == 405
    assert client.get(page("delivery_sendings", delivery.pk)).status_code == 405
    assert client.post(page("webhook_change", webhook.pk), {"url": "https://evil.example/"}).status_code == 403
    assert client.post(page("webhook_delete", webhook.pk), {"post": "yes"}).status_code == 403
    assert client.post(page("delivery_delete", delivery.pk), {"post": "yes"}).status_code == 403
    assert kinds(webhook) == ["webhook.created", "webhook.tested"]


def test_a_list_costs_the_same_however_many_there_are(django_assert_max_num_queries: Any) -> None:
    team = make_team()
    for _ in range(15):
        outbox.test(make_webhook(team=team)[0], by=SYSTEM)
    client = operator(team)
    for listing in ("webhook_changelist", "delivery_changelist"):
        with django_assert_max_num_queries(24):
            client.get(page(listing))


def test_a_team_that_has_as_many_as_it_may_is_refused_beside_its_field() -> None:
    team = make_team()
    for _ in range(MOST):
        make_webhook(team=team)
    answer = operator(team).post(page("webhook_add"), {"team": team.pk, "agent": "", "url": ADDRESS, "purpose": ""})
    assert f"{team.name} has {MOST} webhooks, which is the most." in answer.content.decode()
    assert Webhook.objects.filter(team=team).count() == MOST
