"""What every channel keeps to. A channel's test file subclasses `ChannelContract` and gives it a rig.

class TestEmail(ChannelContract):
    @pytest.fixture
    def rig(self, ...) -> Rig: ...
"""

from __future__ import annotations

from typing import Any, Protocol

import pytest
from django.contrib.auth.models import User

from approvals.notifications.building import MessageFact, NoticeKind, NoticeMessage, Section, Urgency
from approvals.notifications.channel import UNREACHED, NoticeChannel, Receipt, Result
from tests.factories import bob, make_team
from tests.harness.sent_statements import sent

HOSTILE = 'Pay <script>alert(1)</script> *now* <!channel> & "quoted"\r\nBcc: eve@example.org\u202e'


class Rig(Protocol):
    """One channel with a real other side, and a person who has an address there."""

    channel: NoticeChannel
    person: User

    def heard(self) -> list[str]:
        """List what the other side took, each as the text in which links and words can be looked for."""
        ...

    def answer(self, result: Result) -> None:
        """Have the other side answer the next message by this result, of those that it knows."""
        ...

    def stop(self) -> None:
        """Have nobody listen there any more."""
        ...


def make_message(**fields: Any) -> NoticeMessage:
    given: dict[str, Any] = {
        "kind": NoticeKind.ASKED,
        "subject": "Decision needed: Refund Marit",
        "title": "Refund Marit",
        "reason": "You may decide this gate.",
        "facts": (MessageFact("Amount", "€120.00"),),
        "sections": (Section("Refund", (MessageFact("card", "4417"),)),),
        "link": "https://holdpoint.example/gates/42/",
        "settings_link": "https://holdpoint.example/account/notifications/",
        "button": "Open the gate",
        "urgency": Urgency.NORMAL,
        "gate": 42,
        "thread": "gate-42",
    }
    return NoticeMessage(**given | fields)


class ChannelContract:
    gone = True  # whether the other side can say that an address is gone

    @pytest.fixture
    def rig(self) -> Rig:
        raise NotImplementedError

    def send(self, rig: Rig, *messages: NoticeMessage, earlier: str = "") -> list[Receipt]:
        """Send these in one session to the person's one address."""
        [to] = rig.channel.addresses(people=[rig.person.pk])
        with rig.channel.session() as session:
            return [
                session.send(each, to, key=f"{number}.1764000000", earlier=earlier)
                for number, each in enumerate(messages, 1)
            ]

    def test_it_is_named_and_finds_nobody_whose_account_is_switched_off(self, rig: Rig) -> None:
        assert rig.channel.name.isidentifier()
        assert len(rig.channel.name) <= 12
        assert str(rig.channel.label)
        assert rig.channel.unfit() == ""
        assert rig.channel.at_once >= 1
        User.objects.filter(pk=rig.person.pk).update(is_active=False)
        assert rig.channel.addresses(people=[rig.person.pk]) == []

    def test_it_finds_a_persons_addresses_and_nobody_elses(self, rig: Rig) -> None:
        other = bob(make_team())
        [found] = rig.channel.addresses(people=[rig.person.pk])
        assert (found.person, found.channel) == (rig.person.pk, rig.channel.name)
        assert len(found.label) <= 254
        assert {each.person for each in rig.channel.addresses(people=[other.pk])} <= {other.pk}
        assert rig.channel.addresses() == []
        with sent() as statements:
            rig.channel.addresses(people=[rig.person.pk, other.pk])
        assert len(statements) <= 2

    def test_it_sends_the_title_and_the_link(self, rig: Rig) -> None:
        [receipt] = self.send(rig, make_message())
        assert receipt.result == Result.SENT
        assert receipt.word == ""
        assert len(receipt.reference) <= 200
        [said] = rig.heard()
        assert "Refund Marit" in said
        assert "https://holdpoint.example/gates/42/" in said

    def test_it_sends_every_kind_over_one_session(self, rig: Rig) -> None:
        waits = (NoticeKind.ASKED, NoticeKind.REMINDER, NoticeKind.MENTION)
        messages = []
        for kind in NoticeKind:
            about: dict[str, Any] = {} if kind in waits else {"ended": "Approved by Ann."}
            if kind in (NoticeKind.DIGEST, NoticeKind.TEST):
                items = (make_message(),) if kind == NoticeKind.DIGEST else ()
                about = {"gate": None, "thread": "", "title": "", "items": items}
            messages.append(make_message(kind=kind, **about))
        assert {each.result for each in self.send(rig, *messages)} == {Result.SENT}
        assert len(rig.heard()) == len(messages)

    def test_an_agents_words_are_no_markup_and_no_header(self, rig: Rig) -> None:
        hostile = make_message(
            title=HOSTILE, subject=f"Decision needed: {HOSTILE}", facts=(MessageFact("For", HOSTILE),)
        )
        [receipt] = self.send(rig, hostile)
        assert receipt.result == Result.SENT
        [said] = rig.heard()
        assert "<script>" not in said  # where it would be markup
        assert "<!channel>" not in said

    def test_it_names_what_was_put_off_refused_or_gone_and_goes_on(self, rig: Rig) -> None:
        rig.answer(Result.LATER)
        first, second = self.send(rig, make_message(), make_message())
        assert (first.result, second.result) == (Result.LATER, Result.SENT)
        assert 0 < len(first.word) <= 30
        rig.answer(Result.REFUSED)
        first, second = self.send(rig, make_message(), make_message())
        assert first.result in (Result.REFUSED, Result.GONE)
        assert first.word
        assert second.result == Result.SENT
        if self.gone:
            rig.answer(Result.GONE)
            assert [each.result for each in self.send(rig, make_message())] == [Result.GONE]

    def test_it_raises_nothing_where_nobody_listens(self, rig: Rig) -> None:
        rig.stop()
        [receipt] = self.send(rig, make_message())
        assert receipt.result == Result.LATER
        assert receipt.word in UNREACHED
