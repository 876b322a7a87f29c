"""An agent whose state holds secrets in every kind of place, and which tells them wherever an agent can."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from agents import Action, Agent, Append, Card, EffectUnknown, StepFailed, effect, gate, step, validator
from tests.factories.sample_agents import write_line

TOKEN, KEY, SEED, SESSION = "tok-4f1c9a7e55", "key-88d0b1c2aa", "seed-19c4e6f0bd", "session-c0ffee7710"
SECRETS = (TOKEN, KEY, SEED, SESSION)


class Account(BaseModel):
    name: str
    key: SecretStr


class Payment(BaseModel):
    amount: str
    token: SecretStr
    via: Account | str = ""


class Words(BaseModel):
    text: str
    action: str = ""
    pointer: str = ""


class Vault(Agent):
    """Prepares a payment, asks, and sends it."""

    name = "vault"

    class State(BaseModel):
        ledger: str
        token: SecretStr
        seed: SecretBytes | None = None
        accounts: list[Account] = []
        payment: Payment | None = None
        note: str = ""
        feedback: list[Words] = []
        decision: dict[str, Any] = {}
        session: SecretStr | None = None
        closed: bool = False

    @classmethod
    def title(cls, state: Any) -> str:
        return f"Pay with {state.token.get_secret_value()}"

    @step(retry=0)
    def prepare(self, token: SecretStr, accounts: list[Account]) -> Any:
        """Copy a secret to another secret place."""
        self.notes.append(f"took {token.get_secret_value()}")
        return {"payment": Payment(amount="12.00", token=token, via=accounts[0] if accounts else "")}

    @gate(allows=["send"], edits=["payment"], on_reject="prepare")
    def review(self, payment: Payment | None, token: SecretStr, note: str) -> Card:
        """Say the secret in every word of the card."""
        said = token.get_secret_value()
        action = Action(
            id="pay", title=f"Pay with {said}", effect="send", pointer="/payment", pinned=["/amount", "/token"],
            schema={"type": "object", "properties": {"token": {"type": "string"}, "amount": {"type": "string"}}},
        )  # fmt: skip
        loose = Action(id="tell", title="Tell", tool="tell", arguments={"words": f"it is {said}"})
        return Card(
            title=f"Pay with {said}", summary=f"I use {said}.", reasons=[f"{said} is old"], resource=said,
            actions=[action] if note == "alone" else [action, loose],
        )  # fmt: skip

    @effect(idempotent=True, irreversible=True)
    def send(self, payment: Payment | None, seed: SecretBytes | None, ledger: str, key: str) -> Any:
        """Write down what really ran."""
        assert payment is not None
        write_line(ledger, "send", payment.token.get_secret_value())
        return {"session": SecretStr(SESSION)}

    @step(retry=0)
    def close(self, token: SecretStr, note: str) -> Any:
        """Fail with the secret in the words, where the note says so."""
        if note == "fail":
            raise StepFailed(f"the provider refused {token.get_secret_value()}")
        return {"closed": True}


class Teller(Agent):
    """Wants a code, which a person may give in the place of what would fetch it."""

    name = "teller"

    class State(BaseModel):
        """`code` is a secret, wherever it comes from."""

        ledger: str
        lost: bool = False
        code: SecretStr | None = None
        feedback: list[Words] = []
        decision: dict[str, Any] = {}
        closed: bool = False

    @gate(allows=["fetch"])
    def review(self, ledger: str) -> Card:
        """Ask about the fetching, and about something beside it."""
        verdicts = ["approve", "reject", "respond"]
        fetch = Action(id="fetch", title="Fetch", tool="fetch", effect="fetch", edits=False, verdicts=verdicts)
        return Card(title="Fetch a code", actions=[fetch, Action(id="tell", title="Tell", tool="tell", arguments={})])

    @effect(responds="code", irreversible=True)
    def fetch(self, ledger: str, lost: bool, key: str) -> Any:
        """Fetch it, unless the answer is lost."""
        if lost:
            raise EffectUnknown("the line was cut")
        return {"code": SecretStr(SESSION)}

    @step(retry=0)
    def close(self, ledger: str) -> Any:
        """End."""
        return {"closed": True}


class Minter(Agent):
    """Makes secrets, and says them in its notes and its validator's words."""

    name = "minter"

    class State(BaseModel):
        refuse: bool = False
        coins: list[Account] = []
        feedback: list[Words] = []

    @step(validators=["good"], feedback="feedback", tries=1, rings=0)
    def mint(self, refuse: bool, coins: list[Account]) -> Any:
        """Make one more."""
        self.notes.append(f"made {SESSION}")
        return {"coins": Append([Account(name="new", key=SecretStr(SESSION))])}

    @validator
    def good(self, refuse: bool, coins: list[Account]) -> str | None:
        """Refuse it, where the input says so."""
        return f"{coins[-1].key.get_secret_value()} is worn" if refuse else None
