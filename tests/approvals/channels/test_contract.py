"""Each channel keeps the contract of all channels; and what is its own of Slack, of Teams and of Web Push."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.channels import vapid
from approvals.channels.slack import SlackChannel
from approvals.channels.slack_api import WORDS
from approvals.channels.slack_blocks import escaped
from approvals.channels.teams import Teams
from approvals.channels.web_push import LONGEST_LIFE, WebPush, life
from approvals.models import ChannelAddress
from approvals.notifications.building import MessageFact, NoticeMessage, Section, Urgency
from approvals.notifications.channel import NoticeAddress, Receipt, Result
from approvals.outbound import sending
from tests.approvals.notifications.channel_contract import ChannelContract, Rig
from tests.approvals.notifications.channel_contract import make_message as asked
from tests.approvals.webhooks.receiver import Receiver, cut, status
from tests.factories import ann, make_team

from .messages import HOSTILE, LINK, address, decided, hostile, turn_on
from .push_service import FakeBrowser, PushService
from .slack_server import SlackServer, texts

OPS = address("slack", "C0000OPS")
ELEMENTS = {"RichTextBlock", "ColumnSet", "Column", "Container", "TextRun", "Action.OpenUrl", "AdaptiveCard"}


class PushRig:
    statuses = {Result.LATER: 503, Result.REFUSED: 413, Result.GONE: 410}

    def __init__(self, service: PushService, person: User) -> None:
        self.channel, self.person, self.service = WebPush(), person, service
        self.browser = service.subscribe(vapid.public_key())
        turn_on(person, self.browser)

    def heard(self) -> list[str]:
        """List what is shown: a notification's texts have no markup."""
        read = self.browser.read()
        return [f"{html.escape(each['title'])}\n{html.escape(each['body'])}\n{each['link']}" for each in read]

    def answer(self, result: Result) -> None:
        self.service.answers.append(status(self.statuses[result]))

    def stop(self) -> None:
        self.service.stop()


class SlackRig:
    errors = {Result.LATER: "internal_error", Result.REFUSED: "msg_too_long", Result.GONE: "users_not_found"}

    def __init__(self, server: SlackServer, person: User) -> None:
        self.channel, self.person, self.server = SlackChannel(), person, server

    def heard(self) -> list[str]:
        return [json.dumps(body, ensure_ascii=False) for body in self.server.messages.values()]

    def answer(self, result: Result) -> None:
        self.server.errors.append(self.errors[result])

    def stop(self) -> None:
        self.server.stop()


class TeamsRig:
    statuses = {Result.LATER: 429, Result.REFUSED: 400, Result.GONE: 404}

    def __init__(self, receiver: Receiver, team: Group) -> None:
        self.channel, self.person, self.team, self.receiver = Teams(), ann(team), team, receiver
        ChannelAddress.objects.add("teams", sending.seal(receiver.url), label="#ops", team=team)

    def heard(self) -> list[str]:
        """List the cards; a TextRun has no markup."""
        return [html.escape(json.dumps(json.loads(got.body), ensure_ascii=False)) for got in self.receiver.got]

    def answer(self, result: Result) -> None:
        self.receiver.answers.append(status(self.statuses[result]))

    def stop(self) -> None:
        self.receiver.stop()


def team_of(rig: Any) -> Group:
    found: Group = rig.team
    return found


class TestWebPush(ChannelContract):
    @pytest.fixture
    def rig(self, push_service: PushService) -> PushRig:
        return PushRig(push_service, ann(make_team()))


class TestSlack(ChannelContract):
    @pytest.fixture
    def rig(self, slack: SlackServer) -> SlackRig:
        return SlackRig(slack, ann(make_team()))


class TestTeams(ChannelContract):
    """It has addresses of teams alone, on hosts that the teams chose."""

    @pytest.fixture
    def rig(self, receiver: Receiver) -> TeamsRig:
        return TeamsRig(receiver, make_team())

    def send(self, rig: Rig, *messages: NoticeMessage, earlier: str = "") -> list[Receipt]:
        [to] = rig.channel.addresses(teams=[team_of(rig).pk])
        with rig.channel.session() as session:
            return [session.send(each, to, key="1.1", earlier=earlier) for each in messages]

    def test_it_finds_a_persons_addresses_and_nobody_elses(self, rig: Rig) -> None:
        team = team_of(rig)
        [found] = rig.channel.addresses(people=[rig.person.pk], teams=[team.pk])
        assert (found.person, found.team, found.label) == (None, team.pk, "#ops")
        assert rig.channel.addresses(people=[rig.person.pk]) == rig.channel.addresses(teams=[make_team().pk]) == []

    def test_it_raises_nothing_where_nobody_listens(self, rig: Rig) -> None:
        """The channel does not rest for everybody because one host is away."""
        rig.stop()
        assert self.send(rig, asked()) == [Receipt(Result.LATER, "host_refused")]


def send(to: NoticeAddress, message: Any = None, earlier: str = "") -> Receipt:
    with SlackChannel().session() as sender:
        return sender.send(message or asked(), to, key="1.1", earlier=earlier)


def test_all_messages_about_the_gate_change_in_place_when_it_is_decided(slack: SlackServer) -> None:
    first = send(OPS)
    assert first.result == Result.SENT
    assert send(OPS, decided(), first.reference) == first
    assert slack.called == ["chat.postMessage", "chat.update"]
    [shown] = slack.messages.values()
    said = [each["text"] for each in texts(shown)]
    assert "Approved by Ann Okafor." in said
    assert "4417" not in said, "what was asked is over"
    # After a reminder the first message went on saying that a decision is needed.
    first, reminder = send(OPS), send(OPS, asked(kind="reminder"))
    assert send(OPS, decided(), f"{first.reference} {reminder.reference}") == reminder
    for shown in slack.messages.values():
        assert "Approved by Ann Okafor." in [each["text"] for each in texts(shown)]
    assert send(OPS, decided(), f"C0000OPS:1.2 {reminder.reference}") == reminder
    assert slack.called.count("chat.postMessage") == 3, "one that somebody deleted is not sent anew"
    assert send(OPS, decided(), "C0000OPS:1.2").result == Result.SENT
    assert slack.called[-2:] == ["chat.update", "chat.postMessage"], "but where none is left"


def test_the_button_is_a_link_to_the_gate_and_no_text_is_cut_inside_an_escape(slack: SlackServer) -> None:
    send(OPS)
    [shown] = slack.messages.values()
    [button] = shown["blocks"][-1]["elements"]
    assert (button["type"], button["url"], button["text"]["text"]) == ("button", LINK, "Open the gate")
    assert "value" not in button, "nothing comes back to this site by pressing it"
    assert escaped("a & b", 200) == "a &amp; b"
    assert [escaped("&&&", most) for most in (4, 6, 12, 16)] == ["…", "&amp;…", "&amp;&amp;…", "&amp;&amp;&amp;"]


@pytest.mark.parametrize("what", ["actions", "gates"])
def test_a_long_message_is_cut_to_what_slack_takes(slack: SlackServer, what: str) -> None:
    """Slack refused it for good: nobody was told of the largest gates, nor of many gates with long titles."""
    facts = tuple(MessageFact(f"Field {n}", "x" * 300) for n in range(25))
    long = [f"{n} " + "x" * 240 for n in range(25)]
    sections = tuple(Section(each, facts) for each in long[:11]) if what == "actions" else ()
    items = tuple(asked(subject=each, title=each) for each in long) if what == "gates" else ()
    assert send(OPS, asked(sections=sections, items=items)).result == Result.SENT
    [shown] = slack.messages.values()
    said = [each["text"] for each in texts(shown)]
    assert long[0] in said
    assert long[10 if what == "actions" else 24] not in said
    assert ("More is on the gate's page." in said) == (what == "actions")
    assert shown["blocks"][-1]["type"] == "actions"


def test_an_agents_words_stay_words(slack: SlackServer) -> None:
    assert send(OPS, hostile()).result == Result.SENT
    [shown] = slack.messages.values()
    found = texts(shown)
    assert {each["type"] for each in found} == {"plain_text"}
    assert {each["emoji"] for each in found} == {False}
    assert all("<" not in each["text"] and ">" not in each["text"] for each in found)
    assert "<" not in shown["text"]
    said = [shown[name] for name in ("mrkdwn", "parse", "link_names", "unfurl_links")]
    assert said == [False, "none", False, False]
    assert escaped(HOSTILE, 3000) in [each["text"] for each in found]


def test_an_incoming_webhook_tells_the_end_anew_and_one_that_was_removed_is_gone(slack: SlackServer) -> None:
    to = address("slack", sending.seal(slack.hook))
    assert send(to) == send(to, decided(), "x:1") == Receipt(Result.SENT, reference="hook")
    assert len(slack.hooked) == 2
    assert slack.got[0].headers.get("authorization") is None, "the token goes to Slack's API alone"
    slack.errors.append("invalid_token")
    slack.answers.append(status(404))
    assert send(to).result == Result.GONE
    assert send(to) == Receipt(Result.GONE, "slack_invalid_token")


def test_slacks_errors_and_revoked_tokens_are_data(slack: SlackServer, settings: Any) -> None:
    for error, result in (("channel_not_found", "gone"), ("msg_too_long", "refused"), ("fatal_error", "later")):
        slack.errors.append(error)
        assert send(OPS) == Receipt(Result(result), f"slack_{error}")
    assert max(map(len, WORDS)) <= 30, "every word fits its column"
    slack.answers.extend([status(200), status(502)])
    assert send(OPS) == Receipt(Result.LATER, "bad_answer")
    assert send(OPS) == Receipt(Result.LATER, "http_502")
    slack.errors.append("token_revoked")
    came = send(OPS)
    assert came == Receipt(Result.LATER, "slack_token_revoked")
    assert "HOLDPOINT_SLACK_TOKEN" in WORDS[came.word]
    settings.HOLDPOINT_SLACK_TOKEN = "xoxb-another"
    assert send(OPS) == Receipt(Result.LATER, "slack_invalid_auth")
    settings.HOLDPOINT_SLACK_TOKEN = ""
    assert send(OPS) == Receipt(Result.LATER, "slack_not_authed")


def test_slacks_pause_holds_for_the_whole_session(slack: SlackServer) -> None:
    slack.paused.append(30)
    with SlackChannel().session() as sender:
        assert sender.send(asked(), OPS, key="1.1") == Receipt(Result.LATER, "http_429", retry_after=30.0)
        again = sender.send(asked(), OPS, key="2.1")
    assert again.result == Result.LATER
    assert again.retry_after is not None
    assert 0 < again.retry_after <= 30
    assert slack.called == ["chat.postMessage"], "it was not asked again"


@pytest.fixture
def to(receiver: Receiver) -> NoticeAddress:
    receiver.otherwise = status(202)
    return address("teams", sending.seal(receiver.url))


def send_card(to: NoticeAddress, message: Any = None) -> Receipt:
    with Teams().session() as sender:
        return sender.send(message or asked(), to, key="1.1")


def elements(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        if "type" in found:
            yield found
        for part in found.values():
            yield from elements(part)
    elif isinstance(found, list):
        for part in found:
            yield from elements(part)


def card(receiver: Receiver) -> dict[str, Any]:
    body = json.loads(receiver.got[-1].body)
    [attachment] = body["attachments"]
    assert (body["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    found: dict[str, Any] = attachment["content"]
    return found


def test_a_card_opens_the_gate_and_reads_an_agents_words_as_no_markup(receiver: Receiver, to: NoticeAddress) -> None:
    assert send_card(to) == Receipt(Result.SENT, reference="card")
    shown = card(receiver)
    assert shown["version"] == "1.4"
    assert shown["actions"] == [{"type": "Action.OpenUrl", "title": "Open the gate", "url": LINK}]
    assert {each["type"] for each in elements(shown)} <= ELEMENTS
    assert send_card(to, hostile()).result == Result.SENT
    drawn = list(elements(card(receiver)))
    assert {each["type"] for each in drawn} <= ELEMENTS, "a TextBlock or a FactSet reads Markdown"
    assert HOSTILE in [each.get("text") for each in drawn]
    assert len(receiver.got[-1].body) < 28 * 1024, "Teams takes no more"


def test_a_card_of_many_long_actions_is_cut_to_what_teams_takes(receiver: Receiver, to: NoticeAddress) -> None:
    """Teams refused it, so that a team which lets all values leave heard nothing of its largest gates."""
    facts = tuple(MessageFact(f"Field {n}", "\u20ac" * 300) for n in range(25))
    sections = tuple(Section(f"Action {n}", facts) for n in range(11))
    assert send_card(to, asked(sections=sections)).result == Result.SENT
    assert len(receiver.got[-1].body) < 28 * 1024
    said = [each.get("text") for each in elements(card(receiver))]
    assert [f"Action {n}" in said for n in (0, 10)] == [True, False]
    assert "More is on the gate's page." in said


def test_what_comes_back_is_data(receiver: Receiver, to: NoticeAddress) -> None:
    receiver.answers.extend(
        [status(404), status(429, Retry_After="7"), status(400), status(302, Location="http://127.0.0.1/")]
    )
    assert send_card(to) == Receipt(Result.GONE, "http_404")
    assert send_card(to) == Receipt(Result.LATER, "http_429", retry_after=7.0)
    assert send_card(to) == Receipt(Result.REFUSED, "http_400")
    assert send_card(to) == Receipt(Result.LATER, "redirected")
    assert len(receiver.got) == 4, "a redirect is not followed"


def push(browser: FakeBrowser, message: Any = None, *, signed_in: bool = True) -> Receipt:
    there = replace(address("push", browser.value, team=None, person=1), signed_in=signed_in)
    with WebPush().session() as sender:
        return sender.send(message or asked(), there, key="1.1")


def test_the_browser_reads_it_and_the_push_service_only_hands_it_on(
    push_service: PushService, its: FakeBrowser
) -> None:
    assert push(its) == Receipt(Result.SENT, reference="gate-42")
    assert push_service.refusals == []
    assert its.read() == [
        {
            "title": "Decision needed: Refund Marit", "body": "Amount: €120.00", "tag": "gate-42",
            "link": LINK, "ended": False, "urgent": False,
        }
    ]  # fmt: skip
    [got] = its.got
    assert b"Refund" not in got.body
    assert (got.headers["topic"], got.headers["urgency"]) == ("gate-42", "normal")


def test_where_the_session_has_expired_it_says_only_that_there_is_a_message(its: FakeBrowser) -> None:
    """Nothing came there any more twelve hours after the sign-in; before, everything did."""
    push(its, signed_in=False)
    push(its, decided(), signed_in=False)
    waits, ended = its.read()
    for told in (waits, ended):
        assert (told["title"], told["body"]) == ("Holdpoint has a message for you", "Sign in to read it.")
    assert (waits["tag"], waits["link"], ended["ended"]) == ("gate-42", LINK, True)


def test_the_end_of_a_gate_takes_the_place_of_its_beginning(its: FakeBrowser) -> None:
    push(its, decided(urgency=Urgency.LOW))
    [told] = its.read()
    assert (told["tag"], told["ended"], told["body"]) == ("gate-42", True, "Approved by Ann Okafor.")
    assert its.got[0].headers["urgency"] == "low"


def test_the_longest_message_is_pushed_and_none_to_a_private_address_or_without_a_key(
    its: FakeBrowser, settings: Any
) -> None:
    assert push(its, hostile()).result == Result.SENT
    assert len(its.got[0].body) <= 4096
    its.got.clear()
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert push(its) == Receipt(Result.REFUSED, "bad_address")
    assert its.got == []
    settings.HOLDPOINT_VAPID_KEY = ""
    assert "manage.py vapid" in WebPush().unfit()


def test_what_is_gone_or_refused_is_told_and_what_may_be_taken_later_is_tried_again(
    push_service: PushService, its: FakeBrowser
) -> None:
    push_service.answers.extend(
        [status(404), status(410), status(413), status(429, Retry_After="30"), status(503), cut]
    )
    assert push(its) == push(its) == Receipt(Result.GONE, "push_gone")
    assert push(its) == Receipt(Result.REFUSED, "http_413")
    assert push(its) == Receipt(Result.LATER, "http_429", retry_after=30.0)
    assert push(its) == Receipt(Result.LATER, "http_503")
    assert push(its) == Receipt(Result.LATER, "cut")
    assert push(its).result == Result.SENT


def test_a_browser_under_an_earlier_key_must_subscribe_again_and_an_unknown_sender_keeps_it(
    its: FakeBrowser, settings: Any
) -> None:
    """A wrong clock would otherwise unsubscribe everybody."""
    its.sender = "another"
    assert WebPush().unfit() == ""
    with WebPush().session() as sender:
        its.sender = vapid.public_key()
        to = address("push", its.value, team=None, person=1)
        its.sender = "another"
        assert sender.send(asked(), to, key="1.1").result == Result.LATER
    settings.HOLDPOINT_VAPID_KEY = vapid.make()
    assert push(its) == Receipt(Result.GONE, "key_changed")
    assert its.got == []


@pytest.mark.parametrize(
    ("left", "seconds"), [(timedelta(hours=1), 3600), (timedelta(seconds=-5), 60), (timedelta(days=90), LONGEST_LIFE)]
)
def test_a_message_lives_until_the_deadline(left: timedelta, seconds: int) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert life(asked(deadline=now + left), now=now) == seconds
    assert life(asked(), now=now) == life(decided(deadline=now), now=now) == LONGEST_LIFE
