"""Where webhooks may go: read strictly, and never inside."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from approvals.models.webhook import WebhookRefused
from approvals.outbound import targets
from approvals.outbound.targets import is_permitted
from approvals.webhooks import schedule
from tests.approvals.webhooks.made_webhooks import make_webhook

PUBLIC = ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]
INSIDE = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254",
    "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
    "64:ff9b::7f00:1", "64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "2001:db8::1", "0.0.0.1", "3fff::1", "192.88.99.1", "::ffff:0:7f00:1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_may_be_sent_to(address: str) -> None:
    assert is_permitted(ip_address(address))


@pytest.mark.parametrize("address", INSIDE)
def test_what_is_inside_may_not(address: str) -> None:
    assert not is_permitted(ip_address(address))


def test_a_setting_names_networks_that_may_be_all_the_same() -> None:
    named = ["10.20.0.0/16", "fd00::/8"]
    for address in ("10.20.1.1", "fd12::1", "::ffff:10.20.1.1"):
        assert is_permitted(ip_address(address), named)
    for address in ("10.21.1.1", "fc00::1", "127.0.0.1"):
        assert not is_permitted(ip_address(address), named)


REFUSED = [
    "http://hooks.example.com/", "ftp://hooks.example.com/", "hooks.example.com", "//hooks.example.com/", "", "https://",
    "https://user@hooks.example.com/", "https://user:secret@hooks.example.com/", "https://hooks.example.com/#part",
    "https://hooks.example.com\\@inside/", "https://hooks.example.com/a b", "https://hooks.example.com/\r\nHost: x",
    "https://hooks.example.com:0/", "https://hooks.example.com:99999/", "https://hooks.example.com:x/",
    "https://hooks.exämple.com/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://[/",
    # Saved, and pending for ever: a resolver reads each as an address within.
    "https://127.1/", "https://0x7f.1/", "https://2130706433/", "https://017700000001/", "https://127.0.0.1./",
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://LocalHost/", "https://hooks.localhost./",
    "https://0/", "https://10.1/", "https://\uff11\uff12\uff17.0.0.1/", "https://127\u30020.0.1/",
    "https://169.254.169.254/latest/meta-data/", "https://-hooks.example.com/", "https://a..b/", "javascript:alert(1)",
    "https://hooks.example.com/" + "a" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("url", REFUSED, ids=lambda url: url[:40])
def test_an_address_that_may_not_be_is_refused_with_a_sentence_that_says_what_to_do(url: str, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert len(targets.fault(url).split()) > 4
    with pytest.raises(WebhookRefused):
        make_webhook(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/",
        "https://hooks.example.com:8443/a/b?c=d&e",
        "https://1.1.1.1/",
        "https://xn--exmple-cua.com",
    ],
)
def test_any_other_is_taken(url: str, settings: Any) -> None:
    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert targets.fault(url) == ""


@pytest.mark.parametrize("host", ["0x7f.1", "2130706433", "127.1", "017700000001"])
def test_a_number_that_only_some_programs_take_for_an_address_is_sent_nothing(host: str, settings: Any) -> None:
    """Rows of before the form refused it are looked up as the resolver does, before anything leaves."""
    from approvals.outbound import sending

    settings.HOLDPOINT_WEBHOOKS_PRIVATE = []
    assert sending.send(f"https://{host}/", b"{}", {}).word == "bad_address"


class TestSchedule:
    """When it is tried again."""

    def test_pauses_grow_and_end(self) -> None:
        found = [schedule.pause(tries, [5, 60, 3600], spread=0) for tries in (1, 2, 3, 4)]
        assert found == [5, 60, 3600, None]

    def test_by_chance_they_are_a_fifth_longer_or_shorter(self) -> None:
        assert schedule.pause(2, [5, 60], spread=1) == pytest.approx(72)
        assert schedule.pause(2, [5, 60], spread=-1) == pytest.approx(48)

    def test_what_a_receiver_asks_for_makes_them_longer_within_a_day_and_never_shorter(self) -> None:
        asked = [schedule.pause(1, [60], spread=0, asked=seconds) for seconds in (0, 90, 1e9)]
        assert asked == [60, 90, 24 * 3600]

    def test_after_the_last_try_nothing_is_asked(self) -> None:
        assert schedule.pause(2, [60], spread=0, asked=10) is None

    def test_the_default_goes_on_for_about_a_day(self, settings: Any) -> None:
        from config.environment import EnvironmentReader

        default = EnvironmentReader({}).numbers(
            "HOLDPOINT_WEBHOOKS_RETRIES", [5, 30, 300, 1800, 3600, 7200, 14400, 21600, 36000]
        )
        assert 20 < sum(default) / 3600 < 28
