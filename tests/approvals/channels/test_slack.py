"""Slack, against a server that answers as Slack does."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.channels.slack import SlackChannel
from approvals.channels.slack_blocks import escaped
from approvals.channels.slack_errors import WORDS
from approvals.notifications.channel import NoticeAddress, Receipt, Result
from approvals.notifications.message import MessageFact, Section
from approvals.outbound import signing
from tests.approvals.webhooks.receiver import status

from .messages import HOSTILE, LINK, address, asked, decided, hostile
from .slack_server import SlackServer, texts

OPS = address("slack", "C0000OPS")


def send(to: NoticeAddress, message: Any = None, earlier: str = "") -> Receipt:
    with SlackChannel().session() as sender:
        return sender.send(message or asked(), to, key="1.1", earlier=earlier)


def test_the_message_changes_in_place_when_the_gate_is_decided(slack: SlackServer) -> None:
    first = send(OPS)
    assert first.result == Result.SENT
    assert send(OPS, decided(), first.reference) == first
    assert slack.called == ["chat.postMessage", "chat.update"]
    [shown] = slack.messages.values()
    said = [each["text"] for each in texts(shown)]
    assert "Approved by Ann Okafor." in said
    assert "Pay a refund" not in said, "what was asked is over"


def test_all_messages_about_the_gate_change_and_not_the_last_alone(slack: SlackServer) -> None:
    """After a reminder the first message went on saying that a decision is needed."""
    first, reminder = send(OPS), send(OPS, asked(kind="reminder"))
    assert send(OPS, decided(), f"{first.reference} {reminder.reference}") == reminder
    for shown in slack.messages.values():
        assert "Approved by Ann Okafor." in [each["text"] for each in texts(shown)]
    assert send(OPS, decided(), f"C0000OPS:1.2 {reminder.reference}") == reminder
    assert slack.called.count("chat.postMessage") == 2, "one that somebody deleted is not sent anew"


def test_the_button_is_a_link_to_the_gate(slack: SlackServer) -> None:
    send(OPS)
    [shown] = slack.messages.values()
    [button] = shown["blocks"][-1]["elements"]
    assert (button["type"], button["url"], button["text"]["text"]) == ("button", LINK, "Open the request")
    assert "value" not in button, "nothing comes back to this site by pressing it"


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


def test_a_message_that_is_no_more_is_sent_anew(slack: SlackServer) -> None:
    assert send(OPS, decided(), "C0000OPS:1.2").result == Result.SENT
    assert slack.called == ["chat.update", "chat.postMessage"]


def test_a_reminder_is_a_message_of_its_own(slack: SlackServer) -> None:
    first = send(OPS)
    assert send(OPS, asked(kind="reminder"), first.reference).reference != first.reference


def test_an_agents_words_stay_words(slack: SlackServer) -> None:
    assert send(OPS, hostile()).result == Result.SENT
    [shown] = slack.messages.values()
    found = texts(shown)
    assert {each["type"] for each in found} == {"plain_text"}
    assert {each["emoji"] for each in found} == {False}
    assert all("<" not in each["text"] and ">" not in each["text"] for each in found)
    assert "<" not in shown["text"]
    assert (shown["mrkdwn"], shown["parse"], shown["link_names"], shown["unfurl_links"]) == (
        False,
        "none",
        False,
        False,
    )
    assert escaped(HOSTILE, 3000) in [each["text"] for each in found]


def test_a_text_is_never_cut_inside_an_escape() -> None:
    assert escaped("a & b", 200) == "a &amp; b"
    assert [escaped("&&&", most) for most in (4, 6, 12, 16)] == ["…", "&amp;…", "&amp;&amp;…", "&amp;&amp;&amp;"]


def test_an_incoming_webhook_tells_the_end_anew(slack: SlackServer) -> None:
    to = address("slack", signing.seal(slack.hook))
    assert send(to) == send(to, decided(), "x:1") == Receipt(Result.SENT, reference="hook")
    assert len(slack.hooked) == 2
    assert slack.got[0].headers.get("authorization") is None, "the token goes to Slack's API alone"


def test_a_webhook_that_was_removed_in_slack_is_gone(slack: SlackServer) -> None:
    slack.errors.append("invalid_token")
    slack.answers.append(status(404))
    to = address("slack", signing.seal(slack.hook))
    assert send(to).result == Result.GONE
    assert send(to) == Receipt(Result.GONE, "slack_invalid_token")


def test_a_revoked_token_is_data_that_says_what_to_do(slack: SlackServer, settings: Any) -> None:
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


@pytest.mark.parametrize(
    ("error", "result"),
    [("channel_not_found", "gone"), ("not_in_channel", "later"), ("msg_too_long", "refused"), ("fatal_error", "later")],
)
def test_each_error_is_data(slack: SlackServer, error: str, result: str) -> None:
    slack.errors.append(error)
    assert send(OPS) == Receipt(Result(result), f"slack_{error}")


def test_an_answer_that_is_none_is_tried_again(slack: SlackServer) -> None:
    slack.answers.extend([status(200), status(502)])
    assert send(OPS) == Receipt(Result.LATER, "bad_answer")
    assert send(OPS) == Receipt(Result.LATER, "http_502")


def test_every_word_fits_its_column() -> None:
    assert max(map(len, WORDS)) <= 30


def test_a_seal_opens_with_an_earlier_key_and_not_without(settings: Any) -> None:
    closed = signing.seal("https://hooks.example.com/secret")
    assert "hooks" not in closed
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another-key-of-the-installation-0123"
    assert signing.unseal(closed) == "https://hooks.example.com/secret"
    settings.SECRET_KEY_FALLBACKS = []
    assert signing.unseal(closed) is None
    assert send(address("slack", closed)) == Receipt(Result.REFUSED, "secret_lost")
