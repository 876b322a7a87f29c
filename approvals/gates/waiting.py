"""The gates that wait for a person, in one part of a statement that reads their reach too."""

from __future__ import annotations

from typing import Any

from django.db.models import Value

from approvals.models import Policy
from checkpoints.access import token_scope

from .lists.queue_filters import URGENT
from .lists.queues import ASKED, FOR_OTHERS, LENT_ASKED, MAY, OPEN, WAITS, added_teams

# In one's own name comes first: what is also lent to somebody who decides there anyway is not read a second time.
_SQL = f"""
SELECT id FROM (
  SELECT q.* FROM (SELECT id, separation, bool_and(lent) FROM ({{}}) every(id, separation, lent) GROUP BY 1, 2
    ) s(id, separation, lent) CROSS JOIN LATERAL (
    SELECT g.id, g.deadline, g.opened_at FROM approvals_gate g
    WHERE g.policy_id = s.id AND {OPEN}{MAY}{FOR_OTHERS.format(LENT_ASKED)}{ASKED}{WAITS}
    ORDER BY {URGENT} LIMIT %s) q
  UNION
  SELECT q.* FROM (SELECT id, bool_and(lent) FROM ({{}}) every(id, lent) GROUP BY 1) t(id, lent) CROSS JOIN LATERAL (
    SELECT g.id, g.deadline, g.opened_at FROM approvals_addedteam a
    JOIN approvals_gate g ON g.id = a.gate_id AND g.team_id = coalesce(%s, g.team_id)
    JOIN LATERAL (SELECT p.separation, t.lent FROM approvals_policy p WHERE p.id = g.policy_id) s ON true
    WHERE a.team_id = t.id AND a.open AND {OPEN}{MAY}{FOR_OTHERS.format(LENT_ASKED)}{WAITS}
    ORDER BY {URGENT} LIMIT %s) q
) q ORDER BY deadline, opened_at, id LIMIT %s
"""  # noqa: S608 - constants


def waiting_for(user: Any, most: int) -> tuple[str, list[Any]]:
    """Return SQL for the ids of the gates that wait for a person, ordered like `ReaderReach.ids`, without the reach."""
    columns = ("pk", "separation")
    own, values = (
        Policy.objects.decided_by(user).annotate(of=Value(False)).values_list(*columns, "of").query.sql_with_params()
    )
    lent, more = (
        Policy.objects.lent_to(user).annotate(of=Value(True)).values_list(*columns, "of").query.sql_with_params()
    )
    teams, others = added_teams(user)
    who = [user.pk] * (MAY + FOR_OTHERS + WAITS).count("%s")
    asked = [user.pk] * ASKED.count("%s")
    only = token_scope.bounds_of(user).team
    sql = _SQL.format(f"{own} UNION ALL {lent}", teams)
    return sql, [*values, *more, *who, *asked, most, *others, only, *who, most, most]
