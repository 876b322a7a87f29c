"""What open pages may hear, asked for many at once, is what the rules say of one person and one subject."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from approvals.live.access import Access, WatchedPage, access_of, accesses
from approvals.models import Gate
from approvals.sessions import SessionStore, digest_of_key
from checkpoints.access.permissions import teams_of, teams_where
from checkpoints.models import Run
from tests.factories import ann, bob, eve, make_gate, make_policy, make_run, make_team, make_user
from tests.factories.people import MEMBER, REVIEWER
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import session_of

RIGHTS = ("checkpoints.view_run", "approvals.decide_gate", "approvals.view_gate")


def cast() -> tuple[list[User], list[Gate], list[Run]]:
    """People with every kind of right, and gates and runs of every kind of team."""
    support, finance, empty = make_team(), make_team("Finance", may=REVIEWER), make_team("Empty", may=())
    own, stray = make_user("own", empty, may=RIGHTS), make_user("stray", may=RIGHTS)
    people = [ann(support), bob(finance), eve(), own, stray, make_user("root", superuser=True)]
    people += [make_user("both", support, finance), make_user("rooted", finance, superuser=True)]
    policies = [make_policy(support, name="lent", groups=(finance,)), make_policy(finance, name="theirs")]
    policies += [make_policy(empty, name="empty"), make_policy(support, name="wide", groups=(finance, empty))]
    make_policy(support, name="default")
    gates = [make_gate(policy=policy) for policy in policies] + [make_gate(team=support), make_gate()]
    gates[4].replaces.add(gates[0])
    runs = [make_run(team=team) for team in (support, finance, empty)] + [make_run()]
    return people, gates, runs


def test_many_pages_are_answered_as_the_rules_answer_each() -> None:
    people, gates, runs = cast()
    subjects = frozenset({f"gate:{gate.pk}" for gate in gates} | {f"run:{run.pk}" for run in runs})
    asked = [WatchedPage(session_of(person), subjects) for person in people]
    random.Random(3).shuffle(asked)
    answers = {access.user: access for access in accesses(asked) if access is not None}
    assert set(answers) == set(people)
    seen = set()
    for person in people:
        answer = answers[person]
        sees, decides = (set(teams_where(person, name).values_list("pk", flat=True)) for name in RIGHTS[:2])
        assert answer.teams == sees
        assert answer.groups == {f"team.{pk}" for pk in sees} | {f"reviewers.{pk}" for pk in decides} | {
            f"named.{person.pk}"
        }
        visible = {f"gate.{gate.pk}" for gate in Gate.objects.visible_to(person).filter(pk__in=[g.pk for g in gates])}
        visible |= {f"run.{run.pk}" for run in Run.objects.visible_to(person).filter(pk__in=[r.pk for r in runs])}
        assert answer.watched == visible
        seen.add(answer.watched)
    assert len(seen) > 4, "people who see the same would show nothing"


def test_teams_of_many_are_those_of_each() -> None:
    people, _, _ = cast()
    switched_off = make_user("off", make_team("Off", may=MEMBER))
    User.objects.filter(pk=switched_off.pk).update(is_active=False)
    switched_off.refresh_from_db()
    found = teams_of({each.pk for each in (*people, switched_off)}, *RIGHTS)
    for person in (*people, switched_off):
        for name in RIGHTS:
            assert found[person.pk, name] == set(teams_where(person, name).values_list("pk", flat=True)), name


def test_an_ended_or_overdue_session_a_changed_password_and_a_switched_off_account_hear_nothing() -> None:
    team = make_team()
    people = [make_user(f"reader-{n}", team) for n in range(6)]
    keys = [session_of(person) for person in people]
    SessionStore(keys[1]).flush()
    Session.objects.filter(session_key=digest_of_key(keys[2])).update(expire_date=timezone.now() - timedelta(seconds=1))
    people[3].set_password("another-word-1")
    people[3].save()
    User.objects.filter(pk=people[4].pk).update(is_active=False)
    Session.objects.filter(session_key=digest_of_key(keys[5])).update(session_data="junk")
    answers = accesses([WatchedPage(key) for key in [*keys, None, "never"]])
    assert [access.user.pk if access else None for access in answers] == [people[0].pk, *[None] * 7]


def test_a_session_made_under_the_key_before_still_counts_and_one_of_a_backend_no_longer_used_does_not(
    settings: Any,
) -> None:
    key, other = session_of(ann(make_team())), SessionStore(session_of(bob(make_team("Finance"))))
    other["_auth_user_backend"] = "somebody.elses.Backend"
    other.save()
    assert accesses([WatchedPage(other.session_key)]) == [None]
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "a-newer-one"
    assert access_of(key) is not None


def test_a_cookie_that_is_no_key_fails_nobody_who_asks_beside_it() -> None:
    """One with a NUL, by somebody who had not signed in, failed the statement and with it the whole batch."""
    reader = ann(make_team())
    answers = accesses(
        [WatchedPage(session_of(reader)), WatchedPage("\0aaaaaaaaaa"), WatchedPage("é" * 32), WatchedPage("a" * 9000)]
    )
    assert [access.user if access else None for access in answers] == [reader, None, None, None]


def test_junk_is_no_subject() -> None:
    junk = {"gate:", "gate:-1", "gate:1:2", "gate:٣", "run:1e3", "looking:4", f"run:{'9' * 30}", "", "gate"}
    (access,) = accesses([WatchedPage(session_of(ann(make_team())), frozenset(junk))])
    assert isinstance(access, Access)
    assert access.watched == frozenset()


def test_a_thousand_pages_take_as_many_statements_as_one() -> None:
    people, gates, runs = cast()
    keys = [session_of(person) for person in people]
    with sent() as one:
        accesses([WatchedPage(keys[0], frozenset({f"gate:{gates[0].pk}", f"run:{runs[0].pk}"}))])
    every = frozenset({f"gate:{gate.pk}" for gate in gates} | {f"run:{run.pk}" for run in runs})
    with sent() as many:
        accesses([WatchedPage(keys[n % len(keys)], every) for n in range(1000)])
    assert len(many) == len(one) == 5


def test_a_session_of_what_is_no_number_is_nobodys_and_fails_no_other() -> None:
    """`"²".isdigit()`: what PostgreSQL cannot read as a number failed all who asked in the same batch."""
    person, odd = ann(make_team()), SessionStore()
    odd.update({"_auth_user_id": "²", "_auth_user_backend": "django.contrib.auth.backends.ModelBackend"})
    odd.save()
    found = accesses([WatchedPage(odd.session_key), WatchedPage(session_of(person))])
    assert [access and access.user for access in found] == [None, person]
