"""Agents whose outputs are refused, whose calls are made once, and whose failures are caught.

Each line in the external ledger, a file whose path is in the state, is one thing that really ran.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.models import F
from pydantic import BaseModel

from agents import Action, Agent, Card, Jump, StepFailed, effect, gate, step, validator
from agents.models import Memo
from checkpoints.models import Run
from tests.factories.sample_agents import write_line


class Words(BaseModel):
    text: str
    by: str
    gate: int | None


class Drafter(Agent):
    """One step that does better by one for every word that was said to it."""

    name = "drafter"

    class State(BaseModel):
        ledger: str
        floor: int = 1
        mode: str = ""
        feedback: list[Words] = []
        draft: int = -1
        claim: str = ""
        sent: bool = False

    @step(validators=["enough", "even"], writes=["draft", "claim"], retry=1, backoff=0)
    def write(self, ledger: str, floor: int, mode: str, feedback: list[Words]) -> Any:
        write_line(ledger, "write", len(feedback))
        if mode == "lie":
            self.enough = lambda draft, floor, mode: None  # type: ignore[method-assign]
            return {"draft": 0, "claim": "every validator said yes"}
        return {"draft": len(feedback)}

    @validator
    def enough(self, draft: int, floor: int, mode: str) -> str | None:
        if mode == "raise":
            raise ValueError("the judge is ill")
        if mode == "odd answer":
            return 7  # type: ignore[return-value]
        if mode == "remember":
            self.once("call", str)
        return f"{draft} is less than {floor} \0" if draft < floor else None

    @validator
    def even(self, draft: int, mode: str) -> list[str]:
        return [f"{draft} is odd", "make it even"] if mode == "even" and draft % 2 else []

    @step
    def send(self, draft: int) -> dict[str, Any]:
        return {"sent": draft >= 0}


class Mute(Agent):
    """Has no place for words in its state, and reads them from the runtime."""

    name = "mute"

    class State(BaseModel):
        floor: int = 2
        guess: int = -1
        heard: list[str] = []

    @step(validators=["enough"], tries=3, rings=0)
    def think(self, floor: int) -> dict[str, Any]:
        return {"guess": len(self.refusals), "heard": self.refusals}

    @validator
    def enough(self, guess: int, floor: int) -> list[str]:
        return [f"{guess} is not {floor}"] if guess < floor else []

    @step
    def after(self, guess: int) -> dict[str, Any]:
        return {"heard": [*self.refusals, "over"]}


class Builder(Agent):
    """Three steps that make of each other what the last one's validator judges, with others in between."""

    name = "builder"

    class State(BaseModel):
        ledger: str
        floor: int = 2
        fault: str = "middle"
        feedback: list[Words] = []
        first: int = 0
        middle: int = 0
        aside: int = 0
        product: int = 0
        receipt: str = ""

    @step
    def start(self, ledger: str, fault: str, feedback: list[Words]) -> dict[str, Any]:
        write_line(ledger, "start", len(feedback))
        return {"first": len(feedback) if fault == "first" else 100}

    @step
    def shape(self, ledger: str, fault: str, first: int, feedback: list[Words]) -> dict[str, Any]:
        write_line(ledger, "shape", len(feedback))
        return {"middle": len(feedback) if fault == "middle" else first}

    @gate(on_reject="shape")
    def review(self, fault: str) -> Card | None:
        return Card(title="Build it?") if fault == "asked" else None

    @step
    def other(self, ledger: str) -> dict[str, Any]:
        write_line(ledger, "other")
        return {"aside": 1}

    @effect(undo="cancel", guarded=False)
    def order(self, ledger: str, aside: int, *, key: str) -> dict[str, Any]:
        write_line(ledger, "order", key)
        return {"receipt": key}

    def cancel(self, ledger: str, receipt: str) -> None:
        write_line(ledger, "cancel", receipt)

    @step(validators=["fits"], rings=2, backoff=0)
    def build(self, ledger: str, floor: int, middle: int, aside: int) -> dict[str, Any]:
        write_line(ledger, "build", middle)
        return {"product": middle + aside - 1}

    @validator
    def fits(self, product: int, floor: int) -> str | None:
        return f"{product} is less than {floor}" if product < floor else None


class Sided(Agent):
    """What is judged was made by an effect, and by a gate's edit: neither is run again by a repair."""

    name = "sided"

    class State(BaseModel):
        ledger: str
        amount: int = 0
        bought: int = 0
        product: int = 0

    @step
    def propose(self, ledger: str) -> dict[str, Any]:
        write_line(ledger, "propose")
        return {"amount": 1}

    @gate(edits=["amount"], allows=["buy"])
    def review(self, amount: int) -> Card:
        return Card(title="Buy?", actions=[Action(id="buy", effect="buy", pointer="/amount")])

    @effect(irreversible=True)
    def buy(self, ledger: str, amount: int) -> dict[str, Any]:
        write_line(ledger, "buy", amount)
        return {"bought": amount}

    @step(validators=["never"], rings=5)
    def build(self, ledger: str, bought: int, amount: int) -> dict[str, Any]:
        write_line(ledger, "build")
        return {"product": bought + amount}

    @validator
    def never(self, product: int) -> str:
        return "no"


def ask(ledger: str, *words: Any) -> Any:
    write_line(ledger, "ask", *words)
    return len(Path(ledger).read_text().splitlines()), list(words)


class Caller(Agent):
    """Makes a dear call once, and then fails as its mode says."""

    name = "caller"

    class State(BaseModel):
        ledger: str
        flag: str = ""
        mode: str = ""
        feedback: list[str] = []
        answer: Any = None
        kinds: list[str] = []
        receipt: str = ""

    @step(retry=2, backoff=0, writes=["answer", "kinds"], validators=["good"], rings=0)
    def think(self, ledger: str, flag: str, mode: str) -> Any:
        asked = self.once("model", ask, ledger, "why?")
        if mode == "raise" and self.attempt < 3:
            raise ValueError("after the call")
        if mode == "hopeless" and not Path(flag).exists():
            raise StepFailed("nothing to be done")
        if mode == "twice":
            again = self.once("model", ask, ledger, "why?")
            other = self.once("model", ask, ledger, "why?", salt="another")
            return {"answer": [asked, again, other]}
        if mode == "object":
            self.once("model", ask, ledger, object())
        if mode == "no json":
            self.once("object", object)
        if mode == "large":
            self.once("large", "why?".ljust, 2000)
        if mode == "no name":
            self.once("", ask, ledger)
        return {"answer": asked, "kinds": [type(asked).__name__]}

    @validator
    def good(self, answer: Any, mode: str, flag: str) -> str | None:
        return "ask it again" if mode == "refuse" and not Path(flag).exists() else None

    @gate(on_reject="think", allows=["act"])
    def review(self, ledger: str, answer: Any) -> Card:
        return Card(title=f"Is {self.once('title', ask, ledger, 'title')} right?")

    @effect(irreversible=True, idempotent=True, retry=2, backoff=0)
    def act(self, ledger: str, *, key: str) -> dict[str, Any]:
        self.once("plan", ask, ledger, "plan")
        if self.attempt == 1:
            raise ValueError("who knows")
        return {"receipt": key}


class Robbed(Agent):
    """While its call is under way another worker takes the run, or makes the same call."""

    name = "robbed"

    class State(BaseModel):
        ledger: str
        mode: str = ""
        heard: str = ""

    @step(writes=["heard"])
    def think(self, ledger: str, mode: str) -> Any:
        try:
            return {"heard": self.once("call", self.call, mode)}
        except Exception:  # noqa: BLE001 - what a careless step does
            return {"heard": "swallowed"}
        except BaseException:
            if mode != "greedy":
                raise
            return {"heard": "swallowed everything"}

    def call(self, mode: str) -> str:
        run = Run.objects.get(pk=self.run.id)
        assert run.head is not None
        if mode == "beaten":
            from agents.steps.memo import digest_of

            Memo.objects.create(
                run=run, base=run.head, step="think", name="call", digest=digest_of("call", (mode,), ""),
                result=b'"the first answer"', token=run.token,
            )  # fmt: skip
        elif not Memo.objects.filter(run=run).exists() and run.token == 1:
            Run.objects.filter(pk=run.pk).update(token=F("token") + 1, status="queued", lease_until=None)
        return "mine"


class Catcher(Agent):
    """A step whose failure another one catches."""

    name = "catcher"

    class State(BaseModel):
        mode: str = "raise"
        feedback: list[Words] = []
        plan: str = ""
        done: bool = False

    @step(retry=1, backoff=0, catch="simple")
    def clever(self, mode: str) -> dict[str, Any]:
        if mode == "hopeless":
            raise StepFailed("nothing to be done")
        if mode == "raise":
            raise ValueError("too clever")
        return {"plan": "clever"}

    @step
    def polish(self, plan: str) -> dict[str, Any]:
        return {"plan": plan + ", polished"}

    @step
    def simple(self, plan: str, feedback: list[Words]) -> dict[str, Any]:
        return {"plan": plan or f"simple, because {feedback[0].by}: {feedback[0].text}", "done": True}


class Circler(Agent):
    """Goes round: by a jump, by a catch, or over an effect and a gate."""

    name = "circler"

    class State(BaseModel):
        ledger: str
        until: int = 100
        mode: str = ""
        times: int = 0

    @step(loop_guard=3)
    def hop(self, mode: str, times: int) -> Any:
        if mode == "catch":
            return Jump("fall")
        return Jump("act") if mode == "act" else {"times": times + 1}

    @step
    def turn(self, times: int, until: int) -> Any:
        return Jump("hop") if times < until else Jump("end")

    @step(catch="fix", loop_guard=2, retry=0)
    def fall(self) -> dict[str, Any]:
        raise ValueError("fell")

    @step
    def fix(self) -> Any:
        return Jump("fall")

    @effect(irreversible=True, guarded=False, loop_guard=2)
    def act(self, ledger: str, times: int) -> Any:
        write_line(ledger, "act", times)
        return Jump("act", {"times": times + 1})

    @step
    def end(self) -> None:
        """Come to the end."""


class Slow(Agent):
    """Pauses for a time of its own between attempts."""

    name = "slow"

    class State(BaseModel):
        """Nothing."""

    @step(retry=5, backoff=40)
    def wait(self) -> None:
        raise ValueError("not yet")


class Told(Agent):
    """What is made is told before it is judged, and telling cannot be undone."""

    name = "told"

    class State(BaseModel):
        ledger: str
        about: str = "part"
        part: int = 0
        topic: str = ""
        told: str = ""
        product: int = 0

    @step(reads_world=True)
    def make(self, ledger: str) -> dict[str, Any]:
        write_line(ledger, "make")
        return {"part": Path(ledger).read_text().count("make")}

    @step
    def name_it(self, about: str, part: int) -> dict[str, Any]:
        return {"topic": f"{about} {part}"}

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, topic: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "tell", topic)
        return {"told": topic}

    @validator
    def big(self, product: int) -> str | None:
        return None if product >= 2 else "too small"

    @step(validators=["big"], rings=1)
    def check(self, part: int) -> dict[str, Any]:
        return {"product": part}


class Announced(Told):
    """The same, where what is told is not made of what is made again."""

    name = "announced"

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, about: str, *, key: str) -> dict[str, Any]:
        write_line(ledger, "tell", about)
        return {"told": about}
