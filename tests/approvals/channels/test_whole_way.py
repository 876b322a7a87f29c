"""From a gate that opens to the browser and the channel that are told; and how channels are added and removed."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse

from approvals.channels import team_channels, vapid
from approvals.channels.team_channels import MOST, ChannelRefused
from approvals.models import ChannelAddress, Gate, Message, Policy
from approvals.notifications import delivering
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.approvals.notifications.conftest import nothing_told_yet  # noqa: F401 - a fixture
from tests.approvals.notifications.told import rows
from tests.approvals.webhooks.made_webhooks import operator
from tests.approvals.webhooks.receiver import Receiver, status
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team, make_user
from tests.harness.racing_threads import meet_lock
from tests.harness.signed_in_clients import signed_in

from .messages import turn_on
from .push_service import PushService
from .slack_server import SlackServer, texts

pytestmark = pytest.mark.usefixtures("nothing_told_yet")
SECRET = "https://hooks.slack.com/services/T0/B0/very-secret"


def opened(*, leaves: str = "title") -> tuple[Gate, Any]:
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team, name="default")
    Policy.objects.filter(pk=policy.pk).update(leaves=leaves)
    policy.refresh_from_db()
    return make_gate(policy=policy, team=team, started_by=bob(team), card=make_card()), reviewer


def test_a_browser_that_is_gone_is_told_nothing_more_and_its_owner_reads_why(push_service: PushService) -> None:
    gate, reviewer = opened()
    browser = push_service.subscribe(vapid.public_key())
    turn_on(reviewer, browser)
    push_service.answers.append(status(410))
    delivering.run_slice()
    assert ("asked", "Ann", "failed", "push_gone") in rows(gate)
    page = signed_in(reviewer).get(reverse("notifications")).content.decode()
    assert "Off: the browser takes no messages any more: turn it on again there." in page


def test_a_person_is_found_in_slack_once_and_their_message_changes(slack: SlackServer) -> None:
    gate, reviewer = opened()
    delivering.run_slice()
    decide(gate, reviewer, "approve")
    delivering.run_slice()
    assert [each.body for each in slack.got if b"ann%40" in each.body] == [b"email=ann%40example.org"], "once"
    assert [each for each in slack.called if each.startswith("chat.")] == ["chat.postMessage", "chat.update"]
    [((channel, _at), shown)] = slack.messages.items()
    assert channel == "D0000ANN"
    assert "Approved by Ann Okafor." in [each["text"] for each in texts(shown)]


def test_whom_slack_does_not_know_is_not_asked_for_again_before_they_say_so(slack: SlackServer) -> None:
    slack.people.clear()
    gate, reviewer = opened()
    delivering.run_slice()
    assert ("asked", "Ann", "failed", "slack_users_not_found") in rows(gate)
    client = signed_in(reviewer)
    assert "nobody in Slack has this e-mail address" in client.get(reverse("notifications")).content.decode()
    slack.people["ann@example.org"] = "U0000ANN"
    another = make_gate(policy=gate.policy, team=gate.team, card=make_card())
    delivering.run_slice()
    assert not slack.messages
    client.post(reverse("slack-lookups"))
    make_gate(policy=gate.policy, team=gate.team, card=make_card())
    delivering.run_slice()
    assert len(slack.messages) == 1
    assert not Message.objects.filter(gate=another, channel="slack", user=reviewer).exists()


def test_a_teams_channels_are_told_of_its_gates_and_of_their_ends(slack: SlackServer, receiver: Receiver) -> None:
    gate, reviewer = opened()
    add = team_channels.add
    add(gate.team, "slack", "C0000OPS", label="#ops", by=SYSTEM)
    add(gate.team, "slack", slack.hook, label="#refunds", by=SYSTEM)
    add(gate.team, "teams", receiver.url, label="Refunds", by=SYSTEM)
    add(make_team(), "teams", receiver.url, label="Another team's", by=SYSTEM)
    ChannelAddress.objects.filter(user=reviewer).delete()
    delivering.run_slice()
    decide(gate, reviewer, "approve")
    delivering.run_slice()
    assert sorted(channel for channel, _ in slack.messages) == ["C0000OPS", "D0000ANN"]
    assert slack.called.count("chat.update") == 2
    assert (len(slack.hooked), len(receiver.got)) == (2, 2)


def page(name: str, *numbers: int) -> str:
    return reverse(f"admin:approvals_channeladdress_{name}", args=numbers)


def form(team: Group) -> dict[str, Any]:
    return {"team": team.pk, "channel": "slack", "address": SECRET, "label": "#approvals"}


def kinds(found: ChannelAddress) -> list[str]:
    return list(Event.objects.filter(subject=f"channel:{found.pk}").order_by("pk").values_list("kind", flat=True))


def test_its_address_is_stored_sealed_and_shown_nowhere() -> None:
    team = make_team()
    client = operator(team)
    assert client.post(page("add"), form(team)).status_code == 302
    made = ChannelAddress.objects.get(team=team)
    assert "secret" not in made.value
    for address in (page("change", made.pk), page("changelist")):
        shown = client.get(address).content.decode()
        assert "#approvals" in shown
        assert "very-secret" not in shown
        assert made.value not in shown
    assert kinds(made) == ["channel.added"]
    data = bytes(Event.objects.get(subject=f"channel:{made.pk}").data)
    assert b"hooks.slack.com" in data
    assert b"very-secret" not in data


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"address": "#approvals"}, "Write the channel"), ({"address": "C024BE91L"}, "HOLDPOINT_SLACK_TOKEN"),
        ({"address": "https://10.0.0.1/"}, "private address"), ({"address": "", "label": ""}, "required"),
        ({"channel": "push"}, "not one of the available choices"), ({"team": ""}, "required"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_to_is_refused(more: dict[str, str], said: str) -> None:
    team = make_team()
    answer = operator(team).post(page("add"), form(team) | more)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not ChannelAddress.objects.filter(team=team).exists()


def test_a_test_message_says_what_came_of_it_and_one_that_is_removed_is_told_nothing_more(
    receiver: Receiver, slack: SlackServer
) -> None:
    team = make_team()
    client = operator(team)
    made = team_channels.add(team, "teams", receiver.url, label="Refunds", by=SYSTEM)
    receiver.answers.extend([status(202), status(500), status(404)])
    told = [client.post(page("tests", made.pk), follow=True).content.decode() for _ in range(3)]
    assert "The test message arrived in Refunds." in told[0]
    assert "did not arrive in Refunds: the server answered 500." in told[1]
    assert "Gone: the server answered 404" in told[2]
    assert "Send a test message" not in told[2]
    bot = team_channels.add(team, "slack", "C0000OPS", label="#ops", by=SYSTEM)
    assert "arrived in #ops" in client.post(page("tests", bot.pk), follow=True).content.decode()
    assert kinds(made) == ["channel.added", *["channel.tested"] * 3]
    assert [client.post(page("removals", bot.pk)).status_code for _ in range(2)] == [302, 404]
    assert not ChannelAddress.objects.usable("slack").filter(team=team).exists()
    assert kinds(bot) == ["channel.added", "channel.tested", "channel.removed"]
    assert team_channels.add(team, "slack", "C0000OPS", label="#ops", by=SYSTEM) == bot


def test_a_removed_one_is_told_nothing_more(receiver: Receiver) -> None:
    team = make_team()
    client = operator(team)
    made = team_channels.add(team, "teams", receiver.url, label="Refunds", by=SYSTEM)
    assert client.post(page("removals", made.pk)).status_code == 302
    assert client.post(page("removals", made.pk)).status_code == 404
    assert not ChannelAddress.objects.usable("teams").filter(team=team).exists()
    assert kinds(made) == ["channel.added", "channel.removed"]
    again = team_channels.add(team, "teams", receiver.url, label="Refunds", by=SYSTEM)
    assert again == made


def test_those_of_another_team_and_peoples_browsers_do_not_exist() -> None:
    theirs, own = make_team(), make_team()
    made = team_channels.add(theirs, "slack", SECRET, label="#theirs", by=SYSTEM)
    browser = ChannelAddress.objects.add("push", "{}", label="Firefox", user=make_user("Sam", own))
    client = operator(own)
    for found in (made, browser):
        assert client.get(page("change", found.pk)).status_code == 404
        for order in ("tests", "removals"):
            assert client.post(page(order, found.pk)).status_code == 404
    assert "#theirs" not in client.get(page("changelist")).content.decode()
    root = signed_in(make_user("Root", superuser=True))
    assert "Firefox" not in root.get(page("changelist")).content.decode(), "not even a root sees people's browsers"
    assert root.get(page("change", browser.pk)).status_code == 404
    assert client.post(page("add"), form(theirs)).status_code == 200
    assert signed_in(make_user("Ann", own)).get(page("changelist")).status_code == 302


def test_of_two_at_once_no_more_are_added_than_a_team_may_have() -> None:
    team = make_team()
    add = partial(team_channels.add, team, "slack", label="#x", by=SYSTEM)
    for number in range(MOST - 1):
        add(f"{SECRET}/{number}")
    late = meet_lock(partial(add, f"{SECRET}/last"), partial(add, f"{SECRET}/one-more"))
    assert isinstance(late, ChannelRefused)
    assert ChannelAddress.objects.filter(team=team).count() == MOST
