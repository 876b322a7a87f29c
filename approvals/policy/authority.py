"""Checks who may decide a gate: when somebody decides, and again for every voter when a quorum closes.

People decide in their own name, as members of the policy's teams or of those added to the gate, or for somebody who is
away and would be one of these (approvals.models.assignments.delegation). Whoever may not decide by separation of duties
decides for nobody, and nobody decides for them. In their own name comes first: then nobody's authority is used up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.models import Decision, Gate
from checkpoints.access.permissions import DECIDE_GATE, right_in
from checkpoints.postgresql.batch_query import typed
from checkpoints.postgresql.sql import run_sql

from .separation import apart_from, why_apart

SWITCHED_OFF = gettext_lazy("This account is switched off; ask an administrator.")


FOR_NOBODY = gettext_lazy("You would decide this for somebody who is away, and who may not decide it.")

# $1 the policy, $2 its teams, $3 the gate, $4 people: who is active, and in whose name each may decide.
_STANDING = f"""
SELECT one.id, EXISTS (
  SELECT FROM (SELECT unnest($2::bigint[]) AS id
    UNION SELECT added.team_id FROM approvals_addedteam added WHERE added.gate_id = $3) team
  WHERE one.id IN {right_in("team.id", DECIDE_GATE)}),
  ARRAY(SELECT lent.person_id FROM approvals_lentpolicy lent WHERE lent.policy_id = $1 AND lent.delegate_id = one.id
    UNION SELECT lent.person_id FROM approvals_lentteam lent JOIN approvals_addedteam added ON added.id = lent.added_id
    WHERE added.gate_id = $3 AND lent.delegate_id = one.id ORDER BY 1)
FROM auth_user one WHERE one.is_active AND one.id = ANY($4)
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class GateStanding:
    """One person's authority at a gate, before separation of duties."""

    own: bool | None  # whether they are a reviewer in their own name; None for an account that is switched off
    lenders: Collection[int] = ()  # the people for whom they may decide, who are away


def standings(people: Collection[int], gate: Gate) -> dict[int, GateStanding]:
    """Read how these people stand to the gate now, by id. One statement.

    A superuser has no authority here without being in the teams. Teams, permissions and the account's state are read
    from the database, whatever the caller's objects say.
    """
    asked = [gate.policy_id, gate.policy.reviewer_ids, gate.pk, list(people)]
    found = {one: GateStanding(own, lenders) for one, own, lenders in run_sql(_STANDING, list(map(typed, asked)))}
    return {one: found.get(one, GateStanding(None)) for one in people}


def why_not(user: User, gate: Gate) -> str:
    """Say why this person may not decide this gate, as a sentence; "" where they may."""
    found = standings([user.pk], gate)[user.pk]
    return reason(user.pk, found.own, gate, found.lenders)


def lapsed(votes: Collection[Decision], gate: Gate) -> list[int]:
    """List the voters whose vote no longer counts, by the authority that it used, as that is now. One statement."""
    found = standings([each.user_id for each in votes], gate)
    return [each.user_id for each in votes if _ended(each, found[each.user_id], gate)]


def _ended(vote: Decision, now: GateStanding, gate: Gate) -> bool:
    if vote.on_behalf_of_id is None:
        return bool(reason(vote.user_id, now.own, gate))
    lent = vote.on_behalf_of_id in now.lenders
    return now.own is None or not lent or not apart_from(gate).isdisjoint((vote.user_id, vote.on_behalf_of_id))


def reason(person: int, own: bool | None, gate: Gate, lenders: Collection[int] = ()) -> str:
    """Say why this person, who stands to the gate as `GateStanding` says, may not decide it; "" where they may."""
    if own is None:
        return str(SWITCHED_OFF)
    if not own and not lenders:
        names = _(" or ").join(group.name for group in gate.reviewers)
        return _("Only people in %(teams)s who may decide gates can decide this one.") % {"teams": names}
    if apart := why_apart(person, gate):
        return apart
    return "" if own or set(lenders) - apart_from(gate) else str(FOR_NOBODY)


def on_behalf(lenders: Collection[int], gate: Gate, *, used: Iterable[int] = ()) -> int | None:
    """Choose for whom a delegate decides: the first who may, and whose authority is not `used`; else the first."""
    may = [each for each in sorted(lenders) if each not in apart_from(gate)]
    free = [each for each in may if each not in set(used)]
    return next(iter(free or may), None)
