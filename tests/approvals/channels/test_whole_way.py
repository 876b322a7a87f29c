"""From a gate that opens to the browser and the channel that are told, and again when it is decided."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from approvals.channels import team_channels, vapid
from approvals.models import ChannelAddress, Gate, Notice, Policy
from approvals.notifications import notifying
from checkpoints.actors import SYSTEM
from tests.approvals.notifications.conftest import nothing_told_yet  # noqa: F401 - a fixture
from tests.approvals.notifications.told import due, rows
from tests.approvals.webhooks.receiver import Receiver, status
from tests.factories import ann, bob, decide, make_card, make_gate, make_policy, make_team
from tests.harness.signed_in_clients import signed_in

from .push_service import PushService
from .signed_in_browsers import turn_on
from .slack_server import SlackServer, texts

pytestmark = pytest.mark.usefixtures("nothing_told_yet")


def opened(*, leaves: str = "title") -> tuple[Gate, Any]:
    team = make_team()
    reviewer = ann(team)
    policy = make_policy(team, name="default")
    Policy.objects.filter(pk=policy.pk).update(leaves=leaves)
    policy.refresh_from_db()
    return make_gate(policy=policy, team=team, started_by=bob(team), card=make_card()), reviewer


def test_the_notification_of_a_gate_becomes_that_of_its_end(push_service: PushService) -> None:
    gate, reviewer = opened()
    browser = push_service.subscribe(vapid.public_key())
    turn_on(reviewer, browser)
    notifying.run_slice()
    decide(gate, reviewer, "approve")
    notifying.run_slice()
    first, last = browser.read()
    assert first["title"] == "Decision needed: Refund €120.00 to Marit"
    assert first["link"].endswith(f"/gates/{gate.pk}/")
    assert first["tag"] == last["tag"] == f"gate-{gate.pk}"
    assert (last["ended"], last["body"]) == (True, "Approved by Ann Okafor.")
    page = signed_in(reviewer).get(reverse("notifications")).content.decode()
    assert "Last message" in page


def test_a_policy_that_lets_only_the_number_leave_pushes_only_the_number(push_service: PushService) -> None:
    gate, reviewer = opened(leaves="number")
    browser = push_service.subscribe(vapid.public_key())
    turn_on(reviewer, browser)
    notifying.run_slice()
    [told] = browser.read()
    assert told["title"] == f"Decision needed: gate {gate.pk}"
    assert "Marit" not in str(told)


def test_a_browser_that_is_gone_is_told_nothing_more_and_its_owner_reads_why(push_service: PushService) -> None:
    gate, reviewer = opened()
    browser = push_service.subscribe(vapid.public_key())
    turn_on(reviewer, browser)
    push_service.answers.append(status(410))
    notifying.run_slice()
    assert ("asked", "Ann", "failed", "push_gone") in rows(gate)
    page = signed_in(reviewer).get(reverse("notifications")).content.decode()
    assert "Off: the browser takes no messages any more: turn it on again there." in page


def test_a_person_is_found_in_slack_once_and_their_message_changes(slack: SlackServer) -> None:
    gate, reviewer = opened()
    notifying.run_slice()
    decide(gate, reviewer, "approve")
    notifying.run_slice()
    assert [each.body for each in slack.got if b"ann%40" in each.body] == [b"email=ann%40example.org"], "once"
    assert [each for each in slack.called if each.startswith("chat.")] == ["chat.postMessage", "chat.update"]
    [((channel, _at), shown)] = slack.messages.items()
    assert channel == "D0000ANN"
    assert "Approved by Ann Okafor." in [each["text"] for each in texts(shown)]


def test_whom_slack_does_not_know_is_not_asked_for_again_before_they_say_so(slack: SlackServer) -> None:
    slack.people.clear()
    gate, reviewer = opened()
    notifying.run_slice()
    assert ("asked", "Ann", "failed", "slack_users_not_found") in rows(gate)
    client = signed_in(reviewer)
    assert "nobody in Slack has this e-mail address" in client.get(reverse("notifications")).content.decode()
    slack.people["ann@example.org"] = "U0000ANN"
    another = make_gate(policy=gate.policy, team=gate.team, card=make_card())
    notifying.run_slice()
    assert not slack.messages
    client.post(reverse("slack-lookups"))
    make_gate(policy=gate.policy, team=gate.team, card=make_card())
    notifying.run_slice()
    assert len(slack.messages) == 1
    assert not Notice.objects.filter(gate=another, channel="slack", user=reviewer).exists()


def test_a_revoked_token_is_tried_again_and_read_in_the_log(slack: SlackServer) -> None:
    gate, reviewer = opened()
    slack.errors.append("token_revoked")
    notifying.run_slice()
    assert ("asked", "Ann", "pending", "slack_token_revoked") in rows(gate)
    page = signed_in(reviewer).get(reverse("notifications")).content.decode()
    assert "Slack does not accept HOLDPOINT_SLACK_TOKEN any more" in page
    due(channel="slack")
    notifying.run_slice()
    assert len(slack.messages) == 1


def test_slacks_pause_is_kept_to(slack: SlackServer) -> None:
    gate, _ = opened()
    slack.paused.append(3600)
    notifying.run_slice()
    told = Notice.objects.get(gate=gate, channel="slack")
    assert told.status == "pending"
    assert told.next_attempt_at is not None
    assert (told.next_attempt_at - told.created_at).total_seconds() > 3000


def test_a_teams_channels_are_told_of_its_gates_and_of_their_ends(slack: SlackServer, receiver: Receiver) -> None:
    gate, reviewer = opened()
    add = team_channels.add
    add(gate.team, "slack", "C0000OPS", label="#ops", by=SYSTEM)
    add(gate.team, "slack", slack.hook, label="#refunds", by=SYSTEM)
    add(gate.team, "teams", receiver.url, label="Refunds", by=SYSTEM)
    add(make_team(), "teams", receiver.url, label="Another team's", by=SYSTEM)
    ChannelAddress.objects.filter(user=reviewer).delete()
    notifying.run_slice()
    decide(gate, reviewer, "approve")
    notifying.run_slice()
    assert sorted(channel for channel, _ in slack.messages) == ["C0000OPS", "D0000ANN"]
    assert slack.called.count("chat.update") == 2
    assert (len(slack.hooked), len(receiver.got)) == (2, 2)
