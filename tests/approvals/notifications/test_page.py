"""The page of notification settings: what it shows, what it stores, and what it refuses."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from approvals.models import Notice, NotificationPreference
from approvals.notifications import notifying
from approvals.notifications.email import Email
from tests.factories import ann, make_gate, make_team
from tests.harness.signed_in_clients import signed_in

from .mail_server import MailServer
from .told import fanned

PAGE = "/account/notifications/"
FORM = {
    "asked-email": "high", "reminder-email": "low", "decided-email": "medium", "mention-email": "low",
    "my_run-email": "never", "zone": "Europe/Berlin", "remind": "1h", "quiet": "on", "quiet_from": "19:00",
    "quiet_until": "08:00", "quiet_day": ["5", "6"], "critical_passes": "on", "digest_1": "09:00", "digest_2": "",
    "digest_day": ["0", "1", "2", "3", "4"],
}  # fmt: skip


def test_it_shows_the_defaults_and_stores_what_is_chosen() -> None:
    reader = ann(make_team())
    client = signed_in(reader)
    page = client.get(PAGE).content.decode()
    assert reader.email in page
    assert 'name="asked-email"' in page
    assert client.post(PAGE + "settings/", FORM)["Location"] == PAGE + "?saved"
    kept = NotificationPreference.objects.get(user=reader)
    assert kept.choices["asked"] == {"email": "high"}
    assert (kept.zone, kept.remind_before, kept.quiet_days) == ("Europe/Berlin", dt.timedelta(hours=1), [5, 6])
    assert (kept.quiet_from, kept.digest_at) == (dt.time(19), [dt.time(9)])
    assert kept.digest_next is not None
    shown = client.get(PAGE).content.decode()
    assert '<option value="high" selected>' in shown
    assert client.cookies["hp-own-zone"].value == "Europe/Berlin"
    assert 'value="Europe/Berlin"' in shown


def test_the_zone_of_the_profile_is_that_of_the_digest() -> None:
    """It was stored beside the profile's, so that pages and messages told two times."""
    reader = ann(make_team())
    client = signed_in(reader)
    client.post(PAGE + "settings/", FORM)
    client.post(
        "/account/changes/", {"first_name": reader.first_name, "last_name": reader.last_name, "zone": "Asia/Tokyo"}
    )
    kept = NotificationPreference.objects.get(user=reader)
    assert (kept.zone, kept.digest_next.hour if kept.digest_next else None) == ("Asia/Tokyo", 0)
    assert 'value="Asia/Tokyo"' in client.get(PAGE).content.decode()
    assert [each.zone for each in Email().addresses(people=[reader.pk])] == ["Asia/Tokyo"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"zone": "Mars/Olympus"},
        {"quiet_from": "late"},
        {"quiet_from": ""},
        {"quiet_until": "19:00"},
        {"quiet_day": ["0", "1", "2", "3", "4", "5", "6"]},
        {"digest_day": []},
    ],
    ids=str,
)
def test_it_stores_nothing_of_what_cannot_be(wrong: dict[str, Any]) -> None:
    reader = ann(make_team())
    answer = signed_in(reader).post(PAGE + "settings/", {**FORM, **wrong})
    assert answer.status_code == 422
    assert "Nothing was changed." in answer.content.decode()
    assert not NotificationPreference.objects.filter(user=reader).exists()


def test_a_test_message_is_sent_and_is_in_the_log(mails: MailServer) -> None:
    reader = ann(make_team())
    client = signed_in(reader)
    assert client.post(PAGE + "tests/", {"channel": "email"}).status_code == 303
    notifying.run_slice()
    assert [mail["Subject"] for mail in mails.mails] == ["A test message"]
    assert "by e-mail: sent" in " ".join(client.get(PAGE).content.decode().split())
    for _ in range(4):
        assert client.post(PAGE + "tests/", {"channel": "email"}).status_code == 303
    assert client.post(PAGE + "tests/", {"channel": "email"}).status_code == 422
    assert Notice.objects.filter(user=reader, kind="test").count() == 5


def test_the_log_names_no_gate_that_its_reader_may_not_see_any_more() -> None:
    """Also one whose message was held back, because they had left the team by then, was there with its title."""
    team = make_team()
    reader = ann(team)
    gate = make_gate(team=team)
    fanned()
    client = signed_in(reader)
    assert gate.title in client.get(PAGE).content.decode()
    reader.groups.clear()
    page = client.get(PAGE).content.decode()
    assert gate.title not in page
    assert f"/gates/{gate.pk}/" not in page
    assert "Decision needed" in page


@pytest.mark.parametrize("channel", ["", "pigeon", "e\0mail"])
def test_no_test_goes_to_an_unknown_channel(channel: str) -> None:
    """A NUL in its name was an error of the server."""
    assert signed_in(ann(make_team())).post(PAGE + "tests/", {"channel": channel}).status_code == 422
    assert not Notice.objects.exists()


def test_the_gates_page_says_who_was_told_and_opened_it(mails: MailServer) -> None:
    team = make_team()
    reviewer = ann(team)
    gate = make_gate(team=team)
    notifying.run_slice()
    client = signed_in(reviewer)
    said = " ".join(client.get(f"/gates/{gate.pk}/").content.decode().split())
    assert "Who was told" in said
    assert "Ann Okafor" in said
    again = " ".join(client.get(f"/gates/{gate.pk}/").content.decode().split())
    assert ", opened" in again
