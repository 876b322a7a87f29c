"""Version 1."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import Agent, step

from . import Salary

__all__ = ["Payroll", "Salary"]


class Payroll(Agent):
    """Has every salary paid by a child."""

    name = "payroll_of_six"
    team = "Support"

    class State(BaseModel):
        ledger: str
        ibans: list[str]
        paid: list[str] = []

    @step
    def read(self, ibans: list[str]) -> dict[str, Any]:
        return {"ibans": sorted(ibans)}

    @step
    def pay_all(self, ledger: str, ibans: list[str]) -> dict[str, Any]:
        children = [self.spawn("salary", {"ledger": ledger, "iban": iban}, name=iban) for iban in ibans]
        return {"paid": [each.state["iban"] for each in self.gather(*children) if each]}
