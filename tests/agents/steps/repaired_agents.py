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
    """What was said of a draft."""

    text: str
    by: str
    gate: int | None


class Drafter(Agent):
    """One step that does better by one for every word that was said to it."""

    name = "drafter"

    class State(BaseModel):
        """`floor` is the least that is accepted."""

        ledger: str
        floor: int = 1
        mode: str = ""
        feedback: list[Words] = []
        draft: int = -1
        claim: str = ""
        sent: bool = False

    @step(validators=["enough", "even"], writes=["draft", "claim"], retry=1, backoff=0)
    def write(self, ledger: str, floor: int, mode: str, feedback: list[Words]) -> Any:
        """Draft, or lie about it."""
        write_line(ledger, "write", len(feedback))
        if mode == "lie":
            self.enough = lambda draft, floor, mode: None  # type: ignore[method-assign]
            return {"draft": 0, "claim": "every validator said yes"}
        return {"draft": len(feedback)}

    @validator
    def enough(self, draft: int, floor: int, mode: str) -> str | None:
        """Say what is missing, or fail as told."""
        if mode == "raise":
            raise ValueError("the judge is ill")
        if mode == "odd answer":
            return 7  # type: ignore[return-value]
        if mode == "remember":
            self.once("call", str)
        return f"{draft} is less than {floor} \0" if draft < floor else None

    @validator
    def even(self, draft: int, mode: str) -> list[str]:
        """Mind odd numbers in one mode only."""
        return [f"{draft} is odd", "make it even"] if mode == "even" and draft % 2 else []

    @step
    def send(self, draft: int) -> dict[str, Any]:
        """Go on."""
        return {"sent": draft >= 0}


class Mute(Agent):
    """Has no place for words in its state, and reads them from the runtime."""

    name = "mute"

    class State(BaseModel):
        """Counts."""

        floor: int = 2
        guess: int = -1
        heard: list[str] = []

    @step(validators=["enough"], tries=3, rings=0)
    def think(self, floor: int) -> dict[str, Any]:
        """Guess better for every refusal."""
        return {"guess": len(self.refusals), "heard": self.refusals}

    @validator
    def enough(self, guess: int, floor: int) -> list[str]:
        """Judge."""
        return [f"{guess} is not {floor}"] if guess < floor else []

    @step
    def after(self, guess: int) -> dict[str, Any]:
        """Hear nothing any more."""
        return {"heard": [*self.refusals, "over"]}


class Builder(Agent):
    """Three steps that make of each other what the last one's validator judges, with others in between."""

    name = "builder"

    class State(BaseModel):
        """The further back the fault, the wider the ring."""

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
        """The producer of the producer; does better by words only where the fault is its own."""
        write_line(ledger, "start", len(feedback))
        return {"first": len(feedback) if fault == "first" else 100}

    @step
    def shape(self, ledger: str, fault: str, first: int, feedback: list[Words]) -> dict[str, Any]:
        """The producer of what is judged."""
        write_line(ledger, "shape", len(feedback))
        return {"middle": len(feedback) if fault == "middle" else first}

    @gate(on_reject="shape")
    def review(self, fault: str) -> Card | None:
        """Ask in one mode only."""
        return Card(title="Build it?") if fault == "asked" else None

    @step
    def other(self, ledger: str) -> dict[str, Any]:
        """Has nothing to do with it."""
        write_line(ledger, "other")
        return {"aside": 1}

    @effect(undo="cancel", guarded=False)
    def order(self, ledger: str, aside: int, *, key: str) -> dict[str, Any]:
        """Has nothing to do with it either, but costs money."""
        write_line(ledger, "order", key)
        return {"receipt": key}

    def cancel(self, ledger: str, receipt: str) -> None:
        """Take it back."""
        write_line(ledger, "cancel", receipt)

    @step(validators=["fits"], rings=2, backoff=0)
    def build(self, ledger: str, floor: int, middle: int, aside: int) -> dict[str, Any]:
        """Judged."""
        write_line(ledger, "build", middle)
        return {"product": middle + aside - 1}

    @validator
    def fits(self, product: int, floor: int) -> str | None:
        """Judge."""
        return f"{product} is less than {floor}" if product < floor else None


class Pair(Agent):
    """Two validators that nothing ever pleases, and two tries in each ring."""

    name = "pair"

    class State(BaseModel):
        """`part` counts the words that were said."""

        feedback: list[Words] = []
        part: int = 0
        product: int = 0

    @step
    def start(self, feedback: list[Words]) -> dict[str, Any]:
        """The producer."""
        return {"part": len(feedback)}

    @step(validators=["one", "two"], tries=2, rings=1)
    def build(self, part: int) -> dict[str, Any]:
        """Judged."""
        return {"product": part}

    @validator
    def one(self, product: int) -> str:
        """Refuse."""
        return f"one of {product}"

    @validator
    def two(self, product: int) -> str:
        """Refuse as well."""
        return f"two of {product}"


class Sided(Agent):
    """What is judged was made by an effect, and by a gate's edit: neither is run again by a repair."""

    name = "sided"

    class State(BaseModel):
        """Feedback goes nowhere here."""

        ledger: str
        amount: int = 0
        bought: int = 0
        product: int = 0

    @step
    def propose(self, ledger: str) -> dict[str, Any]:
        """Propose nothing much."""
        write_line(ledger, "propose")
        return {"amount": 1}

    @gate(edits=["amount"], allows=["buy"])
    def review(self, amount: int) -> Card:
        """Let people change the amount."""
        return Card(title="Buy?", actions=[Action(id="buy", effect="buy", pointer="/amount")])

    @effect(irreversible=True)
    def buy(self, ledger: str, amount: int) -> dict[str, Any]:
        """Buy."""
        write_line(ledger, "buy", amount)
        return {"bought": amount}

    @step(validators=["never"], rings=5)
    def build(self, ledger: str, bought: int, amount: int) -> dict[str, Any]:
        """Never good enough."""
        write_line(ledger, "build")
        return {"product": bought + amount}

    @validator
    def never(self, product: int) -> str:
        """Refuse."""
        return "no"


def ask(ledger: str, *words: Any) -> Any:
    """A dear call: a line in the ledger, and how many lines there are then, as a tuple."""
    write_line(ledger, "ask", *words)
    return len(Path(ledger).read_text().splitlines()), list(words)


class Caller(Agent):
    """Makes a dear call once, and then fails as its mode says."""

    name = "caller"

    class State(BaseModel):
        """`flag` is a file: once it is there, nothing fails."""

        ledger: str
        flag: str = ""
        mode: str = ""
        feedback: list[str] = []
        answer: Any = None
        kinds: list[str] = []
        receipt: str = ""

    @step(retry=2, backoff=0, writes=["answer", "kinds"], validators=["good"], rings=0)
    def think(self, ledger: str, flag: str, mode: str) -> Any:
        """Ask, then go wrong."""
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
        """Refuse what the model said, in one mode."""
        return "ask it again" if mode == "refuse" and not Path(flag).exists() else None

    @gate(on_reject="think", allows=["act"])
    def review(self, ledger: str, answer: Any) -> Card:
        """Ask people, with a title that was dear."""
        return Card(title=f"Is {self.once('title', ask, ledger, 'title')} right?")

    @effect(irreversible=True, idempotent=True, retry=2, backoff=0)
    def act(self, ledger: str, *, key: str) -> dict[str, Any]:
        """Act on a dear call; the first answer is lost."""
        self.once("plan", ask, ledger, "plan")
        if self.attempt == 1:
            raise ValueError("who knows")
        return {"receipt": key}


class Robbed(Agent):
    """While its call is under way another worker takes the run, or makes the same call."""

    name = "robbed"

    class State(BaseModel):
        """What it heard."""

        ledger: str
        mode: str = ""
        heard: str = ""

    @step(writes=["heard"])
    def think(self, ledger: str, mode: str) -> Any:
        """Call, and swallow every Exception, as careless code does."""
        try:
            return {"heard": self.once("call", self.call, mode)}
        except Exception:  # noqa: BLE001 - what a careless step does
            return {"heard": "swallowed"}
        except BaseException:
            if mode != "greedy":
                raise
            return {"heard": "swallowed everything"}

    def call(self, mode: str) -> str:
        """Be overtaken."""
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
        """`mode` says how it fails."""

        mode: str = "raise"
        feedback: list[Words] = []
        plan: str = ""
        done: bool = False

    @step(retry=1, backoff=0, catch="simple")
    def clever(self, mode: str) -> dict[str, Any]:
        """Fail."""
        if mode == "hopeless":
            raise StepFailed("nothing to be done")
        if mode == "raise":
            raise ValueError("too clever")
        return {"plan": "clever"}

    @step
    def polish(self, plan: str) -> dict[str, Any]:
        """Follows the clever one only."""
        return {"plan": plan + ", polished"}

    @step
    def simple(self, plan: str, feedback: list[Words]) -> dict[str, Any]:
        """Take over."""
        return {"plan": plan or f"simple, because {feedback[0].by}: {feedback[0].text}", "done": True}


class Circler(Agent):
    """Goes round: by a jump, by a catch, or over an effect and a gate."""

    name = "circler"

    class State(BaseModel):
        """`until` is how often."""

        ledger: str
        until: int = 100
        mode: str = ""
        times: int = 0

    @step(loop_guard=3)
    def hop(self, mode: str, times: int) -> Any:
        """Go round by itself."""
        if mode == "catch":
            return Jump("fall")
        return Jump("act") if mode == "act" else {"times": times + 1}

    @step
    def turn(self, times: int, until: int) -> Any:
        """Back, or on to the end."""
        return Jump("hop") if times < until else Jump("end")

    @step(catch="fix", loop_guard=2, retry=0)
    def fall(self) -> dict[str, Any]:
        """Always fail."""
        raise ValueError("fell")

    @step
    def fix(self) -> Any:
        """Believe that it is mended."""
        return Jump("fall")

    @effect(irreversible=True, guarded=False, loop_guard=2)
    def act(self, ledger: str, times: int) -> Any:
        """Act for each."""
        write_line(ledger, "act", times)
        return Jump("act", {"times": times + 1})

    @step
    def end(self) -> None:
        """Come to the end."""


class Slow(Agent):
    """Pauses of its own length between attempts."""

    name = "slow"

    class State(BaseModel):
        """Nothing."""

    @step(retry=5, backoff=40)
    def wait(self) -> None:
        """Fail."""
        raise ValueError("not yet")


class Told(Agent):
    """What is made is told before it is judged, and telling cannot be undone."""

    name = "told"

    class State(BaseModel):
        """Better by one for every time that it is made."""

        ledger: str
        about: str = "part"
        part: int = 0
        topic: str = ""
        told: str = ""
        product: int = 0

    @step(reads_world=True)
    def make(self, ledger: str) -> dict[str, Any]:
        """Make it."""
        write_line(ledger, "make")
        return {"part": Path(ledger).read_text().count("make")}

    @step
    def name_it(self, about: str, part: int) -> dict[str, Any]:
        """What to tell of it."""
        return {"topic": f"{about} {part}"}

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, topic: str, *, key: str) -> dict[str, Any]:
        """Tell it."""
        write_line(ledger, "tell", topic)
        return {"told": topic}

    @validator
    def big(self, product: int) -> str | None:
        """Judge."""
        return None if product >= 2 else "too small"

    @step(validators=["big"], rings=1)
    def check(self, part: int) -> dict[str, Any]:
        """What is judged."""
        return {"product": part}


class Announced(Told):
    """The same, where what is told is not made of what is made again."""

    name = "announced"

    @effect(irreversible=True, guarded=False)
    def tell(self, ledger: str, about: str, *, key: str) -> dict[str, Any]:
        """Tell it."""
        write_line(ledger, "tell", about)
        return {"told": about}
