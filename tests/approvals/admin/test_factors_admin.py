"""Administrators see which second factors somebody has, and remove what was lost; nobody else does."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.cache import cache

from approvals.accounts import factors
from checkpoints.models import Event
from tests.config.sign_in.test_factors import add_app
from tests.factories import make_user
from tests.factories.events import data_of
from tests.harness.signed_in_clients import confirmed, signed_in

PASSWORD = "open sesame again"


def person() -> User:
    cache.clear()
    user = make_user("Ann Okafor", password=PASSWORD)
    add_app(confirmed(user))
    return user


def root() -> User:
    return make_user("Root Admin", superuser=True, password=PASSWORD)


def test_a_superuser_sees_and_removes_them_with_an_event_and_the_sessions_end() -> None:
    user, admin = person(), root()
    there = signed_in(user)
    page = confirmed(admin).get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert "code from an app, recovery code" in page
    app = next(each for each in factors.list_factors(user) if each.method == "code")
    address = f"/admin/auth/user/{user.pk}/factor-removals/"
    assert "Confirm who you are" in signed_in(admin).post(address, {"factor": app.pk}).content.decode()
    assert factors.has_any(user)
    assert confirmed(admin).post(address, {"factor": app.pk}).status_code == 302
    assert factors.list_factors(user) == []
    assert there.get("/").status_code == 302
    told = Event.objects.filter(kind="user.factor_removed", subject=f"user:{user.pk}")
    assert {(data_of(each)["factor"], each.actor) for each in told} == {
        ("code", f"user:{admin.pk}"), ("recovery_code", f"user:{admin.pk}"),
    }  # fmt: skip


def test_one_that_cannot_be_read_can_be_removed() -> None:
    user = person()
    row = Authenticator.objects.get(user=user, type="totp")
    Authenticator.objects.filter(pk=row.pk).update(data={"secret": "x"})
    page = confirmed(root()).get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert "code from an app (cannot be read)" in page
    confirmed(root()).post(f"/admin/auth/user/{user.pk}/factor-removals/", {"factor": row.pk})
    assert factors.list_factors(user) == []


def test_staff_remove_nobodys_and_nobody_their_own_here() -> None:
    user, staff, admin = person(), make_user("Sam Staff", may=("auth.change_user",), password=PASSWORD), root()
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    for what in ("factor-removals", "session-ends"):
        address = f"/admin/auth/user/{user.pk}/{what}/"
        assert confirmed(staff).post(address, {"factor": 1}).status_code == 403
        assert confirmed(admin).get(address).status_code == 405
        assert confirmed(admin).post(f"/admin/auth/user/{admin.pk}/{what}/").status_code == 403
    assert factors.has_any(user)


def test_everywhere_is_everywhere() -> None:
    user = person()
    there = signed_in(user)
    confirmed(root()).post(f"/admin/auth/user/{user.pk}/session-ends/")
    assert there.get("/").status_code == 302
