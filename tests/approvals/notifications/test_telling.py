"""A gate opens, people are told of it, and are not told of what was decided meanwhile."""

from __future__ import annotations

import datetime as dt

from approvals.models import Notice
from approvals.notifications import notifying
from tests.factories import ann, bob, eve, make_card, make_gate, make_policy, make_team

from .mail_server import MailServer, html_of, text_of


def test_who_may_decide_is_told_by_mail_and_nobody_else(mails: MailServer) -> None:
    team = make_team()
    reviewer, starter, _ = ann(team), bob(team), eve()
    policy = make_policy(team, name="default", deadline=dt.timedelta(hours=4))
    gate = make_gate(policy=policy, team=team, started_by=starter, card=make_card())
    notifying.run_slice()
    [mail] = mails.mails
    assert mails.recipients == [reviewer.email]
    assert mail["To"] == f"Ann Okafor <{reviewer.email}>"
    assert mail["Subject"] == f"Refund €120.00 to Marit · gate {gate.pk}"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["List-Unsubscribe"].endswith("/account/notifications/>")
    for said in (text_of(mail), html_of(mail)):
        assert f"/gates/{gate.pk}/" in said
        assert "Refund €120.00 to Marit" in said
    [sent] = Notice.objects.filter(gate=gate, kind="asked")
    assert (sent.status, sent.user, sent.attempts) == ("sent", reviewer, 1)
