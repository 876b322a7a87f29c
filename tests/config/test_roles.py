"""The application's role may add to the audit and never change it."""

from __future__ import annotations

import pytest
from django.db import ProgrammingError, connection

from checkpoints.postgresql.privileges import APPEND_ONLY


def test_the_tests_run_as_the_applications_role_which_owns_nothing() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, count(*) FROM pg_tables WHERE schemaname = 'public' AND tableowner = current_user"
        )
        assert cursor.fetchone() == ("holdpoint_app", 0)


@pytest.mark.parametrize("table", APPEND_ONLY)
@pytest.mark.parametrize("statement", ["UPDATE {} SET id = id", "DELETE FROM {}", "TRUNCATE {}"])
def test_the_application_may_not_change_what_is_append_only(table: str, statement: str) -> None:
    with connection.cursor() as cursor, pytest.raises(ProgrammingError, match="permission denied"):
        cursor.execute(statement.format(table))


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_the_application_may_read_what_is_append_only(table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        assert cursor.fetchone()[0] >= 0


@pytest.mark.parametrize(
    ("bound", "value"),
    [("statement_timeout", "30s"), ("idle_in_transaction_session_timeout", "30s"), ("transaction_timeout", "1min")],
)
def test_no_statement_or_transaction_lasts_for_ever(bound: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {bound}")
        assert cursor.fetchone() == (value,)
