"""Every prepared statement reads its tables by an index, also when it is planned once for whatever it is given.

PostgreSQL plans a statement that is repeated anew five times, and then keeps one plan for all parameters. The look for
new events was planned as a scan of the whole table then, by every web process, for ever. And the application's role
may add to the audit and never change it.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import tempfile
from collections.abc import Iterator
from inspect import Parameter, signature
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.db import ProgrammingError, connection, transaction
from psycopg import sql

from checkpoints.access.permissions import START_RUN, VIEW_RUN, PersonKind
from checkpoints.access.token_scope import EVERYTHING, TokenBounds
from checkpoints.postgresql.prepared_rows import Prepared
from checkpoints.postgresql.privileges import APPEND_ONLY
from checkpoints.store import save_statements
from config.local.servers import DATABASE
from tests.harness.postgresql_clusters import migrated_copy, serving
from tests.harness.session import Session

# How many rows each table has that grows with what is done; in proportion to each other as in a real deployment.
ROWS = {
    "checkpoints_event": 15_000, "checkpoints_eventtext": 2_500, "checkpoints_checkpoint": 10_000,
    "checkpoints_chunk": 2_500, "checkpoints_run": 2_500, "checkpoints_hold": 2_500, "checkpoints_seal": 2_500,
    "checkpoints_gap": 2_500, "approvals_gate": 2_500, "approvals_proposal": 2_500, "approvals_decision": 2_500,
    "approvals_outcome": 2_500, "approvals_grant": 2_500, "approvals_looking": 2_500, "agents_effect": 5_000,
    "agents_token": 2_500, "agents_client": 2_500, "agents_spoken": 2_500, "agents_answer": 2_500,
}  # fmt: skip
# A value for row n, by the column's name where that says how many alike there are, else by its type.
BY_NAME = {
    "status": "(ARRAY['completed', 'completed', 'completed', 'cancelled', 'waiting'])[1 + n % 5]",
    "kind": "CASE n % 10 WHEN 0 THEN 'gate.opened' WHEN 1 THEN 'run.started' ELSE 'checkpoint.saved' END",
    "run_id": "n / 4", "seq": "n % 4", "lineage": "n / 4", "team_id": "n % 20", "policy_id": "n % 40",
    "plan_id": "n % 10", "user_id": "n % 200", "subject": "'gate:' || n", "attempts": "n % 3",
    "previous": "decode(md5(n::text), 'hex')",
}  # fmt: skip
BY_TYPE = {
    "bigint": "n", "integer": "n", "smallint": "n % 100", "boolean": "n % 2 = 0", "uuid": "md5(n::text)::uuid",
    "bytea": "decode(md5(n::text), 'hex')", "character varying": "'x' || n", "text": "'x' || n", "jsonb": "'{}'",
    "timestamp with time zone": "now() - n * interval '1 second'", "double precision": "n", "numeric": "n",
    "interval": "interval '1 hour'", "inet": "'127.0.0.1'",
}  # fmt: skip
COLUMNS = """
SELECT attname, format_type(atttypid, NULL), format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    AND (attnotnull OR attname = ANY(%s)) AND attname != 'xid'
"""
UNBOUND = """
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace
"""
TOKEN = TokenBounds(3, "refunds")
# Values of the keywords that choose a variant of a statement, by their names.
KEYWORDS: dict[str, tuple[Any, ...]] = {
    "kind": (PersonKind(True, False, EVERYTHING), PersonKind(True, False, TOKEN), PersonKind(True, True, EVERYTHING)),
    "within": (EVERYTHING, TOKEN), "noun": ("", "gate", "run"), "most": (9,), "permission": (START_RUN, VIEW_RUN),
    "ended": ("", "run.completed"), "ordered": (False, True), "listed": (False, True),
}  # fmt: skip
HOLE = re.compile(r"\{[0-9a-z]+\}")
BEGINNINGS = tuple(f"checkpoints.models.run_status.{name}" for name in ("CLAIM", "STEP", "STOP"))
WHOLE = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")


def modules() -> Iterator[ModuleType]:
    for name in ("agents", "approvals", "checkpoints"):
        app = importlib.import_module(name)
        for found in pkgutil.walk_packages(app.__path__, f"{name}."):
            if not {"migrations", "examples", "management"} & set(found.name.split(".")):
                yield importlib.import_module(found.name)


def prepared() -> dict[str, str]:
    """Return each statement with numbered parameters, by where it stands."""
    found: dict[str, str] = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, str) and "$1" in value and WHOLE.match(value) and not HOLE.search(value):
                found[f"{module.__name__}.{name}"] = value
    for beginning in BEGINNINGS:
        del found[beginning]
    for stops, chunks, notes in product((False, True), repeat=3):
        found[f"saving: {stops=} {chunks=} {notes=}"] = save_statements._statement(stops, chunks, notes)
    return found


def built() -> dict[str, tuple[Prepared[Any], dict[str, Any]]]:
    """Return each function whose statement is built once, with each choice of its keywords."""
    return {
        f"{module.__name__}.{name} {variant or ''}": (value, variant)
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, Prepared)
        for variant in variants(value)
    }


def variants(statement: Prepared[Any]) -> Iterator[dict[str, Any]]:
    """Yield each choice of the keywords of a statement."""
    parameters = signature(statement.build).parameters.values()
    names = [each.name for each in parameters if each.kind == Parameter.KEYWORD_ONLY]
    for values in product(*(KEYWORDS[name] for name in names)):
        yield dict(zip(names, values, strict=True))


@pytest.fixture(scope="module")
def large(servers: Session) -> Iterator[psycopg.Connection[Any]]:
    """Connect to a database with many rows, which break every rule but the types."""
    with tempfile.TemporaryDirectory(prefix="hpq-", dir="/tmp", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o711)  # the server's account passes through
        with (
            serving(migrated_copy(servers, folder / "data"), folder / "s") as server,
            psycopg.connect(server.url(DATABASE), autocommit=True) as connection,
        ):
            for (statement,) in connection.execute(UNBOUND).fetchall():
                connection.execute(statement)
            for table, rows in ROWS.items():
                fill(connection, table, rows)
            connection.execute("VACUUM ANALYZE")
            connection.execute("SET random_page_cost = 1.1")
            yield connection


def fill(connection: psycopg.Connection[Any], table: str, rows: int) -> None:
    columns = connection.execute(COLUMNS, [table, list(BY_NAME)]).fetchall()
    values = [f"CAST({valued(name, kind)} AS {narrowed})" for name, kind, narrowed in columns]
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _, _ in columns)
    said = sql.SQL(
        "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM generate_series(1, {}) AS n ON CONFLICT DO NOTHING"
    )
    connection.execute(said.format(sql.Identifier(table), names, sql.SQL(", ".join(values)), sql.Literal(rows)))


def valued(name: str, kind: str) -> str:
    if name in BY_NAME and kind != "smallint":
        return BY_NAME[name]
    return "'{}'" if kind.endswith("[]") else BY_TYPE[kind]


def scanned(plan: dict[str, Any], *, limited: bool = False) -> Iterator[str]:
    """Yield the large tables that a plan reads whole: row by row, or along an index that only gives the order."""
    along = plan["Node Type"] in ("Index Scan", "Index Only Scan") and "Index Cond" not in plan and not limited
    if (plan["Node Type"] == "Seq Scan" or along) and plan["Relation Name"] in ROWS:
        yield plan["Relation Name"]
    for part in plan.get("Plans", ()):
        yield from scanned(part, limited=limited or plan["Node Type"] == "Limit")


def plan_of(connection: psycopg.Connection[Any], statement: str) -> dict[str, Any]:
    with psycopg.RawCursor(connection) as cursor:
        cursor.execute(b"EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + statement.encode())
        [[found]] = cursor.fetchall()
    plan: dict[str, Any] = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
    return plan


def test_no_repeated_statement_and_no_queryset_that_is_built_once_scans_a_table(large: psycopg.Connection[Any]) -> None:
    statements = prepared()
    with transaction.atomic():  # some lock their rows
        statements |= {where: function.statement(**variant).sql for where, (function, variant) in built().items()}
    plans = {where: plan_of(large, statement) for where, statement in statements.items()}
    scanning = {where: plan for where, plan in plans.items() if list(scanned(plan))}
    assert not scanning, json.dumps(scanning, indent=1)


def test_a_scan_would_be_found_and_the_statements_are(large: psycopg.Connection[Any]) -> None:
    statement = "SELECT EXISTS (SELECT FROM checkpoints_event WHERE (xid, id) > ($1, $2))"
    assert list(scanned(plan_of(large, statement))) == ["checkpoints_event"]
    assert {"checkpoints.events.commit_order._AFTER", "agents.tokens._FIND"} <= set(prepared())
    assert {"agents.gates.opening._gate_at ", "agents.moves.impact_facts._effects "} <= set(built())


def test_the_application_may_read_what_is_append_only_and_not_change_it() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user, count(*) FROM pg_tables WHERE tableowner = current_user")
        assert cursor.fetchone() == ("holdpoint_app", 0), "the role of the tests too"
        for table, statement in product(APPEND_ONLY, ("UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {}")):
            cursor.execute(f"SELECT count(*) FROM {table}")
            with pytest.raises(ProgrammingError, match="permission denied"):
                cursor.execute(statement.format(table))


def test_no_statement_or_transaction_lasts_for_ever() -> None:
    bounds = {"statement_timeout": "30s", "idle_in_transaction_session_timeout": "30s", "transaction_timeout": "1min"}
    with connection.cursor() as cursor:
        for bound, value in bounds.items():
            cursor.execute(f"SHOW {bound}")
            assert cursor.fetchone() == (value,)
