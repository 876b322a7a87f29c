"""Each channel keeps the contract of all channels."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.channels import vapid
from approvals.channels.slack import SlackChannel
from approvals.channels.teams import Teams
from approvals.channels.web_push import WebPush
from approvals.models import ChannelAddress
from approvals.notifications.channel import Receipt, Result
from approvals.notifications.message import NoticeMessage
from approvals.outbound import signing
from tests.approvals.notifications.channel_contract import ChannelContract, Rig, make_message
from tests.approvals.webhooks.receiver import Receiver, status
from tests.factories import ann, make_team

from .push_service import PushService
from .signed_in_browsers import turn_on
from .slack_server import SlackServer


class PushRig:
    """A push service, and Ann's browser."""

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
    """A workspace in which Ann is."""

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
    """A channel of Ann's team."""

    statuses = {Result.LATER: 429, Result.REFUSED: 400, Result.GONE: 404}

    def __init__(self, receiver: Receiver, team: Group) -> None:
        self.channel, self.person, self.team, self.receiver = Teams(), ann(team), team, receiver
        ChannelAddress.objects.add("teams", signing.seal(receiver.url), label="#ops", team=team)

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
        assert self.send(rig, make_message()) == [Receipt(Result.LATER, "host_refused")]

    def test_what_it_returns_fits_its_columns(self, rig: Rig) -> None:
        [receipt] = self.send(rig, make_message())
        assert len(receipt.reference) <= 200
