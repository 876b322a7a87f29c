"""Grants the application's database role its privileges: everything except rewriting history.

The owner's role migrates. The application's role gets all present and future tables. It may only insert and select
events, seals, the gaps that pruning leaves, and what people approved; it may mark a decision as no longer counting.
It cannot delete gates, versions of policies or effects, and of an effect it may change only the outcome: never its
input or its grant. Applied after every migrate, since other apps' tables come later; safe to repeat.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections, transaction
from psycopg import sql

APPEND_ONLY = (
    "checkpoints_event", "checkpoints_seal", "checkpoints_gap", "approvals_proposal", "approvals_decision",
    "approvals_outcome", "approvals_outcome_decisions", "approvals_grant",
)  # fmt: skip
KEPT = ("approvals_gate", "approvals_policy", "agents_effect")  # rows may change, but not be deleted
CHANGING = {  # the only columns of these tables that may change
    "approvals_decision": ("counts",),
    # Not what tells which version is the newest: an older one would count. Any other change its event shows.
    "approvals_policy": (
        "quorum", "separation", "deadline", "on_expiry", "whole_state", "reason_required", "step_up", "step_up_method",
        "tokens_decide", "registered_only", "withdraw_after", "hourly", "pause", "denials", "stages", "rules",
        "auto_sample", "leaves", "remind_before", "remind_share", "undo_window", "bulk_risk", "calendar_id",
        "escalation",
    ),
    "agents_effect": (
        "status", "version", "result", "error", "attempts", "token", "again", "landings", "intended_at", "settled_at",
    ),
}  # fmt: skip

_GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}",
    "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}",
)


def role() -> str:
    """Return the name of the application's role."""
    return str(getattr(settings, "HOLDPOINT_DB_APP_ROLE", "") or "holdpoint_app")


def grant(using: str = "default") -> bool:
    """Grant the application's role its privileges; False if there is no such role, or it is the one migrating."""
    # In one transaction: the application goes on meanwhile, and must never have a right too few or too many.
    with transaction.atomic(using), connections[using].cursor() as cursor:
        cursor.execute("SELECT rolname = current_user FROM pg_roles WHERE rolname = %s", [role()])
        found = cursor.fetchone()
        if found is None or found[0]:
            return False
        name = sql.Identifier(role())
        for statement in _GRANTS:
            cursor.execute(sql.SQL(statement).format(role=name))
        there = connections[using].introspection.table_names(cursor)
        taken = dict.fromkeys(KEPT, "DELETE, TRUNCATE") | dict.fromkeys(APPEND_ONLY, "UPDATE, DELETE, TRUNCATE")
        for table in taken.keys() & set(there):
            values = {"table": sql.Identifier(table), "role": name, "rights": sql.SQL(taken[table])}
            cursor.execute(sql.SQL("REVOKE {rights} ON {table} FROM {role}").format(**values))
        for table, names in CHANGING.items():
            if table in there:  # with fewer columns, where an earlier migration is the last
                known = {
                    column.name for column in connections[using].introspection.get_table_description(cursor, table)
                }
                columns = sql.SQL(", ").join(sql.Identifier(name) for name in names if name in known)
                values = {"table": sql.Identifier(table), "role": name, "columns": columns}
                cursor.execute(sql.SQL("REVOKE UPDATE ON {table} FROM {role}").format(**values))
                cursor.execute(sql.SQL("GRANT UPDATE ({columns}) ON {table} TO {role}").format(**values))
    return True


def after_migrate(using: str, **_: Any) -> None:
    """Grant the privileges; a receiver of post_migrate."""
    grant(using)
