"""Two at once: of two who send the same code one gets in, and a session that is ended twice is ended once."""

from __future__ import annotations

from typing import Any

from allauth.mfa.models import Authenticator

from approvals.accounts import factors, sign_ins
from approvals.models import SignedIn
from checkpoints import actors
from checkpoints.models import Event
from config.sign_in.factors import advance_counter
from tests.config.sign_in.test_factors import add_app, code_of, first_step, fresh_limits, is_in, person, second_step
from tests.factories.events import data_of
from tests.harness.racing_threads import race
from tests.harness.signed_in_clients import confirmed

__all__ = ["fresh_limits"]


def counts(kind: str, user: Any) -> list[dict[str, Any]]:
    return [data_of(each) for each in Event.objects.filter(kind=kind, subject=f"user:{user.pk}")]


def test_of_two_who_send_the_same_code_one_gets_in() -> None:
    user = person()
    secret = add_app(confirmed(user))
    clients, code = [first_step(user) for _ in range(3)], code_of(secret, 1)
    race([lambda client=client: second_step(client, code) for client in clients])  # type: ignore[misc]
    assert [is_in(client) for client in clients].count(True) == 1


def test_of_two_who_send_the_same_recovery_code_one_gets_in() -> None:
    user = person()
    add_app(confirmed(user))
    [code, *_] = Authenticator.objects.get(user=user, type="recovery_codes").wrap().get_unused_codes()
    clients = [first_step(user) for _ in range(3)]
    race([lambda client=client: second_step(client, code) for client in clients])  # type: ignore[misc]
    assert [is_in(client) for client in clients].count(True) == 1


def test_a_counter_goes_up_once() -> None:
    user = person()
    add_app(confirmed(user))
    row = Authenticator.objects.get(user=user, type="totp")
    value = int(row.data["counter"]) + 5
    assert race([lambda: advance_counter(row, "counter", value)] * 4).count(True) == 1


def test_a_session_that_is_ended_twice_at_once_is_ended_once() -> None:
    user = person()
    client = first_step_free(user)
    number = SignedIn.objects.get(user=user).pk
    by = actors.of_user(user)
    assert race([lambda: sign_ins.end(user, number, by=by)] * 3).count(True) == 1
    assert counts("user.session_ended", user) == [{"count": 1}]
    assert not is_in(client)


def test_a_factor_that_is_removed_twice_at_once_is_told_of_once() -> None:
    user = person()
    add_app(confirmed(user))
    row = Authenticator.objects.get(user=user, type="totp")
    race([lambda: factors.remove(user, [row.pk], by=actors.SYSTEM)] * 3)
    assert sorted(each["factor"] for each in counts("user.factor_removed", user)) == ["code", "recovery_code"]


def first_step_free(user: Any) -> Any:
    """Sign in somebody who has no second factor."""
    from django.test import Client

    client = Client()
    client.post("/accounts/login/", {"login": user.username, "password": "open sesame again"})
    assert is_in(client)
    return client
