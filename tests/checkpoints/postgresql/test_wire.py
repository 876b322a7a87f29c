"""Statements that are prepared by name are found again after a rollback, when psycopg drops all of a connection's.

A name was the number of those that were known: after DEALLOCATE ALL a new statement was given one that an older one
got once more, and "prepared statement holdpoint_2 already exists" was raised on that connection for good.
"""

from __future__ import annotations

import pytest
from django.db import connection

from checkpoints.postgresql import wire


def ran(number: int) -> int | None:
    return wire.run(f"SELECT {number}", [], meanwhile=lambda: None)


@pytest.mark.parametrize("then", [(3, 1, 2, 3), (3, 4, 1, 2, 3, 4), (1, 3, 2, 3)])
def test_statements_are_prepared_again_after_a_rollback_has_dropped_them(then: tuple[int, ...]) -> None:
    assert [ran(1), ran(2)] == [1, 1]
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    assert [ran(number) for number in (*then, *then)] == [1] * 2 * len(then)
