"""Teams, accounts and second factors in the administration: in plain words, and every change is told of."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.urls import reverse

from approvals.accounts import factors
from checkpoints.models import Event
from tests.config.sign_in.test_factors import add_app
from tests.factories import ann, bob, eve, make_team, make_user, unique
from tests.factories.events import data_of
from tests.harness.signed_in_clients import confirmed, signed_in

OWN, PASSWORD = "/accounts/password/change/", "open sesame again"
NEW = {"usable_password": "true", "password1": "quite another one", "password2": "quite another one"}


def root(password: str = "") -> User:
    return make_user("Root", superuser=True, password=password)


def staff(*may: str) -> User:
    return make_user("Sam Staff", may=may, staff=True)


def team_form(team: Group | None, name: str, members: list[User], may: list[str], **more: Any) -> dict[str, Any]:
    rows: list[Any] = list(User.groups.through.objects.filter(group_id=team.pk)) if team else []
    there = {row.user_id: row for row in rows}
    people = [*rows, *[user for user in members if user.pk not in there]]
    form: dict[str, Any] = {"name": name, "may": may, "User_groups-TOTAL_FORMS": len(people)}
    form |= {"User_groups-INITIAL_FORMS": len(rows)}
    for number, each in enumerate(people):
        user = each.pk if isinstance(each, User) else each.user_id
        form |= {f"User_groups-{number}-user": user}
        if not isinstance(each, User):
            form |= {f"User_groups-{number}-id": each.pk, f"User_groups-{number}-group": each.group_id}
            if each.user_id not in {member.pk for member in members}:
                form |= {f"User_groups-{number}-DELETE": "on"}
    return form | more


def told(kind: str, subject: str) -> list[tuple[str, dict[str, Any]]]:
    return [(e.actor, data_of(e)) for e in Event.objects.filter(kind=kind, subject=subject).order_by("pk")]


def test_a_teams_page_says_in_words_what_its_members_may_and_who_they_are() -> None:
    team = make_team(may=("checkpoints.view_run",))
    one = bob(team)
    said = confirmed(root()).get(reverse("admin:auth_group_change", args=[team.pk])).content.decode()
    assert "decide at the gates of policies that name the team" in said
    assert 'value="checkpoints.view_run" id="id_may_0" checked' in said
    assert one.username in said
    listed = confirmed(root()).get(reverse("admin:auth_group_changelist") + f"?q={team.name}").content.decode()
    assert "read the team&#x27;s runs, their states and events" in listed


def test_changing_a_team_changes_what_was_changed_alone_and_tells_who_did_what() -> None:
    team, admin = make_team(may=("checkpoints.view_run", "checkpoints.start_run")), root()
    other = Permission.objects.get(codename="view_session")
    team.permissions.add(other)
    stays, goes, comes = bob(team), ann(team), eve()
    may = ["checkpoints.view_run", "approvals.decide_gate"]
    address = reverse("admin:auth_group_change", args=[team.pk])
    answer = confirmed(admin).post(address, team_form(team, team.name, [stays, comes], may))
    assert answer.status_code == 302, answer.content
    assert set(team.user_set.all()) == {stays, comes}
    assert set(team.permissions.values_list("codename", flat=True)) == {"view_run", "decide_gate", "view_session"}
    ((actor, data),) = told("team.changed", f"team:{team.pk}")
    assert actor == f"user:{admin.pk}"
    assert (data["joined"], data["left"]) == ([comes.pk], [goes.pk])
    assert (data["granted"], data["revoked"]) == (["approvals.decide_gate"], ["checkpoints.start_run"])
    answer = confirmed(admin).post(address, team_form(team, team.name, [stays, comes], may))
    assert (answer.status_code, len(told("team.changed", f"team:{team.pk}"))) == (302, 1)


def account_form(user: User, **changes: Any) -> dict[str, Any]:
    form: dict[str, Any] = {each: getattr(user, each) for each in ("username", "first_name", "last_name", "email")}
    return form | {"groups": list(user.groups.values_list("pk", flat=True)), "is_active": "on"} | changes


def test_changing_an_account_tells_which_columns_and_not_what_is_in_them() -> None:
    team, admin = make_team(), root()
    user = bob()
    address = reverse("admin:auth_user_change", args=[user.pk])
    form = account_form(user, last_name="Secretname", groups=[team.pk])
    del form["is_active"]
    assert confirmed(admin).post(address, form).status_code == 302
    ((actor, data),) = told("user.changed", f"user:{user.pk}")
    assert actor == f"user:{admin.pk}"
    assert data == {"fields": ["is_active", "last_name"], "joined": [team.pk], "left": [], "granted": [], "revoked": []}
    assert b"Secretname" not in bytes(Event.objects.get(kind="user.changed", subject=f"user:{user.pk}").data)


def test_a_new_account_and_a_new_password_are_told_of() -> None:
    admin, name = root(password="the phrase of the root"), unique("carol")
    client = confirmed(admin)
    password = "a long enough phrase"
    form = {"username": name, "usable_password": "true", "password1": password, "password2": password}
    assert client.post(reverse("admin:auth_user_add"), form).status_code == 302
    user = User.objects.get(username=name)
    assert told("user.changed", f"user:{user.pk}")[0][1]["fields"] == ["created"]
    change = {"usable_password": "true", "password1": password + "!", "password2": password + "!"}
    address = reverse("admin:auth_user_password_change", args=[user.pk])
    assert client.post(address, change).status_code == 302
    assert told("user.changed", f"user:{user.pk}")[1][1]["fields"] == ["password"]
    user.refresh_from_db()
    assert user.check_password(password + "!")


def test_staff_make_nobody_more_than_they_are_and_only_switch_accounts_off() -> None:
    """They could rename a reviewer, and themselves to that name: everything they wrote was then taken for theirs.

    An account that was switched off, whose password somebody still knows, is a way in, and so were its sessions.
    """
    helper, boss, user = staff("auth.view_user", "auth.change_user"), root(), bob()
    client, theirs = confirmed(helper), signed_in(user)
    address = reverse("admin:auth_user_change", args=[user.pk])
    taken = {"username": unique("other"), "first_name": "Ann", "last_name": "Okafor"}
    for each in (helper, user):
        before = (each.username, each.first_name, each.last_name)
        form = account_form(each, is_superuser="on", is_staff="on", **taken)
        assert client.post(reverse("admin:auth_user_change", args=[each.pk]), form).status_code == 302
        each.refresh_from_db()
        assert (each.username, each.first_name, each.last_name) == before
    assert (user.is_superuser, user.is_staff) == (False, False)
    for colleague in (boss, staff("checkpoints.view_event")):
        there = reverse("admin:auth_user_change", args=[colleague.pk])
        assert client.post(there, account_form(colleague)).status_code == 403
    for each in (boss, user):
        there = reverse("admin:auth_user_password_change", args=[each.pk])
        assert client.post(there, NEW).status_code == 403
    assert theirs.get("/").status_code == 200
    off = account_form(user)
    del off["is_active"]
    for form in (off, account_form(user)):
        assert client.post(address, form).status_code == 302
        user.refresh_from_db()
        assert not user.is_active
    assert confirmed(root()).post(address, account_form(user)).status_code == 302
    user.refresh_from_db()
    assert user.is_active
    assert theirs.get("/").status_code == 302, "its sessions ended for good"


def test_staff_put_nobody_into_a_team_and_give_no_team_more_rights() -> None:
    helper = staff("auth.view_user", "auth.change_user", "auth.add_group", "auth.change_group")
    team, user = make_team(), bob()
    client = confirmed(helper)
    for each in (helper, user):
        was = each.email
        form = account_form(each, groups=[team.pk], email="mine@example.org", is_staff="on")
        assert client.post(reverse("admin:auth_user_change", args=[each.pk]), form).status_code == 302
        each.refresh_from_db()
        assert (each.email == was, each.groups.count()) == (True, 0)
    before = set(team.permissions.values_list("codename", flat=True))
    form = team_form(team, team.name, [helper], ["approvals.decide_gate", "checkpoints.erase_text"])
    assert client.post(reverse("admin:auth_group_change", args=[team.pk]), form).status_code == 403
    form = team_form(None, unique("Mine"), [helper], ["approvals.decide_gate"])
    assert client.post(reverse("admin:auth_group_add"), form).status_code == 403
    assert (team.user_set.count(), set(team.permissions.values_list("codename", flat=True))) == (0, before)


def test_ones_own_password_is_not_changed_without_the_old_one() -> None:
    """In the administration it was, and with the new one every password was given that a decision asks for again."""
    admin = root(password="the phrase of the root")
    client = confirmed(admin)
    places = [reverse("admin:auth_user_changelist") + f"{zero}{admin.pk}/password/" for zero in ("", "0")]
    assert client.get(places[0]).status_code == 302
    for answer in [client.post(each, NEW) for each in (*places, "/admin/password_change/")]:
        assert (answer.status_code, answer.headers["Location"]) == (302, OWN)
    admin.refresh_from_db()
    assert admin.check_password("the phrase of the root")
    assert told("user.password_changed", f"user:{admin.pk}") == []


def test_anothers_password_and_a_new_account_take_ones_own_password_again() -> None:
    """Whoever came upon an open session made themselves an account there, or took a reviewer's."""
    admin, user, name = root(password="the phrase of the root"), bob(), unique("carol")
    pages = [reverse("admin:auth_user_password_change", args=[user.pk]), reverse("admin:auth_user_add")]
    for page in pages:
        for answer in (signed_in(admin).get(page), signed_in(admin).post(page, {"username": name, **NEW})):
            assert answer.status_code == 302
            assert answer.headers["Location"] == f"{reverse('account_reauthenticate')}?next={quote_plus(page)}"
    assert User.objects.get(pk=user.pk).password == user.password
    assert not User.objects.filter(username=name).exists()
    assert confirmed(admin).get(pages[0]).status_code == 200
    assert signed_in(root()).get(pages[0]).status_code == 403, "an account without a password cannot give it"


def test_accounts_and_teams_are_not_deleted() -> None:
    user, team = bob(), make_team()
    client = confirmed(root())
    assert client.post(reverse("admin:auth_user_delete", args=[user.pk]), {"post": "yes"}).status_code == 403
    assert client.post(reverse("admin:auth_group_delete", args=[team.pk]), {"post": "yes"}).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [user.pk], "post": "yes"}
    client.post(reverse("admin:auth_user_changelist"), action)
    client.post(reverse("admin:auth_group_changelist"), action | {"_selected_action": [team.pk]})
    assert User.objects.filter(pk=user.pk).exists()
    assert Group.objects.filter(pk=team.pk).exists()


def with_app() -> User:
    cache.clear()
    user = make_user("Ann Okafor", password=PASSWORD)
    add_app(confirmed(user))
    return user


def test_a_superuser_ends_sessions_and_removes_factors_with_an_event_also_one_that_cannot_be_read() -> None:
    user, admin = with_app(), root(PASSWORD)
    there, others = signed_in(user), confirmed(admin)
    others.post(f"/admin/auth/user/{user.pk}/session-ends/")
    assert there.get("/").status_code == 302
    there = signed_in(user)
    page = confirmed(admin).get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert "code from an app, recovery code" in page
    app = next(each for each in factors.list_factors(user) if each.method == "code")
    address = f"/admin/auth/user/{user.pk}/factor-removals/"
    assert "Confirm who you are" in signed_in(admin).post(address, {"factor": app.pk}).content.decode()
    assert factors.has_any(user)
    assert confirmed(admin).post(address, {"factor": app.pk}).status_code == 302
    assert (factors.list_factors(user), there.get("/").status_code) == ([], 302)
    told = Event.objects.filter(kind="user.factor_removed", subject=f"user:{user.pk}")
    assert {(data_of(each)["factor"], each.actor) for each in told} == {
        ("code", f"user:{admin.pk}"), ("recovery_code", f"user:{admin.pk}"),
    }  # fmt: skip
    add_app(confirmed(user))
    row = Authenticator.objects.get(user=user, type="totp")
    Authenticator.objects.filter(pk=row.pk).update(data={"secret": "x"})
    page = others.get(f"/admin/auth/user/{user.pk}/change/").content.decode()
    assert "code from an app (cannot be read)" in page
    others.post(address, {"factor": row.pk})
    assert factors.list_factors(user) == []


def test_staff_remove_nobodys_factors_and_nobody_their_own_here() -> None:
    user, helper, admin = with_app(), staff("auth.change_user"), root(PASSWORD)
    for what in ("factor-removals", "session-ends"):
        address = f"/admin/auth/user/{user.pk}/{what}/"
        assert confirmed(helper).post(address, {"factor": 1}).status_code == 403
        assert confirmed(admin).get(address).status_code == 405
        assert confirmed(admin).post(f"/admin/auth/user/{admin.pk}/{what}/").status_code == 403
    assert factors.has_any(user)
