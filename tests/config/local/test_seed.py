"""The teams of the example installation can do their work."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import Policy
from checkpoints.access.permissions import DECIDE_GATE, REWIND_RUN, START_RUN, members_where
from config.local import seed

pytestmark = pytest.mark.whole_database


def test_finance_has_two_people_who_decide_and_one_who_starts_and_rewinds() -> None:
    """It had one person, who could decide only what others asked, and neither start nor rewind anything."""
    seed.make_people("no password of anybody")
    seed.make_policies()
    finance = Group.objects.get(name="Finance").pk
    may = {
        right: set(User.objects.filter(pk__in=members_where(right, teams=[finance])[finance]).values_list("username"))
        for right in (DECIDE_GATE, START_RUN, REWIND_RUN)
    }
    assert may == {DECIDE_GATE: {("mira",), ("lena",)}, START_RUN: {("mira",)}, REWIND_RUN: {("mira",)}}
    assert Policy.objects.named("", team=Group.objects.get(pk=finance)).reviewer_ids == [finance]
