"""Moves messages to webhooks from the tables of the release before into the outbox, when no old process is left.

Until then its workers send what they wrote. A message is moved with its attempts, in one transaction, under its id.
"""

from __future__ import annotations

from django.db import connection, transaction

AT_ONCE = 1000  # rows a transaction
_MOVE = """
WITH moved AS (
  INSERT INTO approvals_notice (kind, channel, webhook_id, gate_id, name, body, status, word, attempts, tries,
    next_attempt_at, busy_until, created_at, finished_at)
  SELECT kind, 'webhook:' || webhook_id, webhook_id, gate_id, message, body,
    CASE status WHEN 'delivered' THEN 'sent' ELSE status END, result, attempts, tries, next_attempt_at, busy_until,
    created_at, finished_at
  FROM approvals_delivery WHERE id = ANY(%(rows)s) ORDER BY id
  ON CONFLICT DO NOTHING RETURNING id, name)
INSERT INTO approvals_messageattempt (message_id, number, at, result, status, duration)
SELECT moved.id, attempt.number, attempt.at, attempt.result, attempt.status, attempt.duration
FROM moved JOIN approvals_delivery delivery ON delivery.message = moved.name
JOIN approvals_attempt attempt ON attempt.delivery_id = delivery.id
"""


def move() -> int:
    """Move all of them; return how many. As the owner. Safe to repeat."""
    moved = 0
    while some := _move_some():
        moved += some
    return moved


def _move_some() -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM approvals_delivery ORDER BY id LIMIT %s FOR UPDATE", [AT_ONCE])
        rows = [row for (row,) in cursor.fetchall()]
        if rows:
            cursor.execute(_MOVE, {"rows": rows})
            cursor.execute("DELETE FROM approvals_attempt WHERE delivery_id = ANY(%s)", [rows])
            cursor.execute("DELETE FROM approvals_delivery WHERE id = ANY(%s)", [rows])
    return len(rows)
