"""A child gets the secrets of its input in clear; what is shown of it has none."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Agent, step
from agents.models import ChildLink
from agents.testing import Trial


class Vault(Agent):
    """A child that needs its secret."""

    name = "child_vault"
    team = "Support"

    class State(BaseModel):
        pin: SecretStr
        opened: bool = False

    @step
    def open(self, pin: SecretStr) -> dict[str, Any]:
        return {"opened": pin.get_secret_value() in ("4711", "0815")}


class Keys(Agent):
    """Starts two children whose inputs differ in the secret alone."""

    name = "keys"
    team = "Support"

    class State(BaseModel):
        pin: SecretStr
        opened: list[bool] = []

    @step
    def open_all(self, pin: SecretStr) -> dict[str, Any]:
        pins = [pin, SecretStr("0815")]
        children = [
            self.spawn("child_vault", Vault.State(pin=each), name=f"Vault {each.get_secret_value()}") for each in pins
        ]
        return {"opened": [bool(each and each.state["opened"]) for each in self.gather(*children)]}


def keys() -> Trial:
    return Trial(Keys, pin="4711", starts=[Vault])


def test_a_child_that_is_started_with_a_model_gets_its_secrets() -> None:
    """They were given as stars, and two inputs that differ in a secret alone were one."""
    run = keys()
    assert (run.status, run.state["opened"]) == ("completed", [True, True])
    links = ChildLink.objects.filter(parent=run.row)
    assert len({bytes(each.digest) for each in links}) == 2


def test_the_title_of_a_child_has_no_secret_of_its_parent() -> None:
    assert "4711" not in keys().children[0].title
