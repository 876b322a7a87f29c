"""The channel for Microsoft Teams and whatever else takes Adaptive Cards by a webhook: to a team's channel.

What was sent cannot be changed, so the end of a gate is a card of its own.
"""

from __future__ import annotations

from collections.abc import Collection

from approvals.notifications.channel import NoticeAddress, NoticeChannel, Receipt, Result
from approvals.notifications.message import NoticeMessage
from approvals.outbound import sending, signing

from .adaptive_card import body_of
from .readers import of_teams
from .receipts import of_one_host, receipt

NAME = "teams"
GONE = frozenset({404, 410})  # the workflow was removed


class Teams(NoticeChannel):
    """The channel."""

    name = NAME
    label = "Microsoft Teams"
    updates = True

    def addresses(self, *, people: Collection[int] = (), teams: Collection[int] = ()) -> list[NoticeAddress]:
        """List these teams' channels. A person has none."""
        return of_teams(NAME, teams)

    def send(self, message: NoticeMessage, to: NoticeAddress, *, key: str, earlier: str = "") -> Receipt:
        """Send one card."""
        url = signing.unseal(to.value)
        if not url:
            return Receipt(Result.REFUSED, "secret_lost")
        return of_one_host(receipt(sending.send(url, body_of(message, to.zone), {}), gone=GONE, reference="card"))
