"""A draw that people still have to see: its gate was shown to them as a sample, and closed without their decision."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models

from checkpoints.postgresql.sql import run_sql

from .gate import Gate

# Two gates that open at once never take the same draw, and neither waits for the other.
_TAKE = """
DELETE FROM approvals_owedsample WHERE gate_id = (
  SELECT gate_id FROM approvals_owedsample
  WHERE team_id = $1 AND policy = $2 AND agent = $3 AND tools IN ($4, '')
  ORDER BY gate_id LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING gate_id
"""


class OwedSample(models.Model):
    """A drawn gate that nobody decided. Its agent's next request of the same tools, under its policy's name, follows.

    Otherwise whoever withdraws what was drawn, changes a word of it and asks again would draw again. By tools, since
    with any request for a successor a harmless one would do.
    """

    # Without constraints, which would lock other tables while they are made.
    gate = models.OneToOneField(Gate, primary_key=True, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False)
    policy = models.CharField(max_length=60)
    agent = models.CharField(max_length=100)
    tools = models.CharField(max_length=32, default="", db_default="")  # their digest; "": written before it was kept

    class Meta:
        indexes = [models.Index(fields=["team", "policy", "agent", "gate"], name="owed_sample_alike")]

    def __str__(self) -> str:
        return f"the sample of gate {self.gate_id}"


def take_owed_sample(*, team: int, policy: str, agent: str, tools: str) -> bool:
    """Take a draw over for a new gate; False where none is owed. Joins the transaction that opens the gate."""
    return bool(run_sql(_TAKE, [team, policy, agent, tools]))
