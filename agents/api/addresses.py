"""The numbers in the API's addresses."""

from __future__ import annotations

from ninja import P, PathEx

RunId = PathEx[int, P(title="Run", description="The run's number.", example=7)]
Seq = PathEx[int, P(title="Checkpoint", description="The checkpoint's number in the run.", example=3)]
GateId = PathEx[int, P(title="Gate", description="The gate's number.", example=42)]
AgentName = PathEx[str, P(title="Agent", description="The agent's name.", example="refunds")]
