"""The client's rules without a network: an operation's steps are answered by the test, and no time passes.

What a model is told of something that is not done says what to do instead, and a time only as a fact: "Ask again after
23:50:30 UTC" after two rejections was taken for an order, and the agent asked until somebody said yes.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from holdpoint import AsyncHoldpoint, Holdpoint, errors, json_pointer
from holdpoint.answers import Ending, Events, Gate
from holdpoint.calls import in_words, result_as_json
from holdpoint.decorating import Signature
from holdpoint.endings import INSTEAD, gate_refusal
from holdpoint.errors import make_problem
from holdpoint.json_pointer import MISSING
from holdpoint.langgraph.interrupts import NOBODY
from holdpoint.mcp import asking, server
from holdpoint.posting import Step, post_gate, question
from holdpoint.runs import Held, await_outcome, beating
from holdpoint.sending import Api, Habits, Lost, Op, Pause, Reply, Send
from holdpoint.tool_runs.plan import ToolCall, Verdict, make_card
from pydantic import BaseModel, Field

from agents.api.agents import StepBody
from approvals.errors import AskedTooOften, AskedTooSoon

OPEN = {"gate": 4, "run": 2, "status": "open", "version": 1, "grants": [], "outcome": None, "edits": {}}


class Clock:
    """Time that passes where an operation pauses, and where an answer takes it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.steps: list[Any] = []

    def run(self, op: Op[Any], answers: list[Reply | Lost], took: float = 0.0) -> Any:
        """Take an operation to its end; the last answer is given again and again."""
        told: Any = None
        while True:
            try:
                step = op.send(told)
            except StopIteration as end:
                return end.value
            self.steps.append(step)
            told = None
            if isinstance(step, Pause):
                self.now += step.seconds
            else:
                self.now += took
                told = answers.pop(0) if len(answers) > 1 else answers[0]

    def api(self, **habits: Any) -> Api:
        return Api(Habits(clock=lambda: self.now, **habits))

    @property
    def sent(self) -> list[Send]:
        return [each for each in self.steps if isinstance(each, Send)]

    @property
    def pauses(self) -> list[float]:
        return [each.seconds for each in self.steps if isinstance(each, Pause)]


def reply(status: int, body: Any, **headers: str) -> Reply:
    kind = "application/problem+json" if status >= 400 else "application/json"
    return Reply(status, {"content-type": kind, **headers}, json.dumps(body).encode())


@pytest.mark.parametrize("last", [Lost("ReadTimeout"), reply(500, {"detail": "Oh."}), Reply(502, {}, b"<html>")])
def test_it_is_tried_again_for_as_long_as_there_is_patience(
    last: Reply | Lost, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    with pytest.raises((errors.Unreachable, errors.Problem)):
        clock.run(clock.api(patience=60).post("gates", {"a": 1}, Events), [last])
    assert 45 < clock.now - 1000 <= 60
    assert 8 <= len(clock.sent) <= 30
    assert len({(each.request.key, each.request.body) for each in clock.sent}) == 1
    assert clock.sent[0].request.key
    [told] = [each.getMessage() for each in caplog.records]
    assert re.fullmatch(r"No usable answer: (ReadTimeout|the server said 50[02])\. It is tried again for 60 s\.", told)


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 1970 00:00:07 GMT", 7.0),  # by the server's clock: that of the client may be wrong by hours
        ("Thu, 01 Jan 1969 00:00:00 GMT", None),
        ("soon", None),
    ],
)
def test_it_waits_for_as_long_as_it_is_asked_to(said: str, wait: float | None) -> None:
    clock = Clock()
    answers: list[Reply | Lost] = [
        Reply(429, {"retry-after": said, "date": "Thu, 01 Jan 1970 00:00:00 GMT"}, b""),
        reply(200, {"items": [], "next": "n", "more": False}),
    ]
    assert clock.run(clock.api().get("events", Events), answers).next == "n"
    assert clock.pauses == [wait] if wait else 0 < clock.pauses[0] <= 0.2


@pytest.mark.parametrize(
    ("status", "code", "more"),
    [
        *((status, "stale_token", {}) for status in (400, 401, 403, 404, 405, 409, 410, 413, 422)),
        # People were asked a third time by nobody's will where the pause was shorter than the client's patience.
        (429, "rejected_before", {"retry-after": "0"}),
        (429, "", {"retry-after": "3600"}),
    ],
)
def test_no_other_refusal_is_tried_again(status: int, code: str, more: dict[str, str]) -> None:
    clock = Clock()
    document = {"detail": "Do this.", "code": code, "errors": [{"parameter": "/a", "detail": "is bad"}]}
    with pytest.raises(errors.Problem, match=rf"Do this\. \({status}.*\)\n  /a: is bad") as refused:
        clock.run(clock.api().get("events", Events), [reply(status, document, **more)])
    assert (refused.value.status, refused.value.code, len(clock.steps)) == (status, code, 1)
    assert isinstance(
        refused.value, {"stale_token": errors.StaleToken, "rejected_before": errors.TooMany}.get(code, errors.Problem)
    )


def test_what_is_no_holdpoint_is_said_to_be_none() -> None:
    for told in (Reply(200, {}, b"<html>"), reply(200, [1]), reply(200, {"items": 3}), Reply(302, {}, b"")):
        clock = Clock()
        with pytest.raises(errors.BadAnswer):
            clock.run(clock.api().get("events", Events), [told])


def test_a_server_that_holds_the_request_is_asked_at_once_again_and_another_after_a_pause() -> None:
    held, not_held = Clock(), Clock()
    answers = [*[reply(200, OPEN)] * 6, reply(200, {**OPEN, "status": "decided"})]
    assert not held.run(await_outcome(held.api(), 4, float("inf")), [*answers], took=25).open
    assert held.pauses == []
    assert not not_held.run(await_outcome(not_held.api(), 4, float("inf")), [*answers]).open
    assert not_held.pauses == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert {each.request.query["wait"] for each in held.sent} == {"25.0"}
    assert {each.request.timeout for each in held.sent} == {55.0}


class Size(BaseModel):
    width: Annotated[int, Field(ge=1)]


def test_a_signature_is_described_and_goes_there_and_back() -> None:
    def cut(size: Size, /, price: Decimal, schema: dict[str, int] | None = None, *, copy: bool = True, key: str) -> int:
        return size.width

    signature = Signature(cut)
    schema = signature.schema()
    assert list(schema["properties"]) == ["size", "price", "schema", "copy"]
    assert (schema["additionalProperties"], schema["$defs"]["Size"]["properties"]["width"]["minimum"]) == (False, 1)
    assert schema["properties"]["price"]["pattern"].count("(?") == 0
    values = signature.bound((Size(width=3), Decimal("1.10")), {})
    sent = signature.sent(values)
    assert sent == {"size": {"width": 3}, "price": "1.10", "schema": None, "copy": True}
    assert signature.values(sent) == values
    assert signature.call(sent, "k") == 3
    with pytest.raises(TypeError, match="any number of things"):
        Signature(lambda *things: None)


def test_arguments_are_pinned_by_name_or_pointer() -> None:
    """The pointer to a name with a slash was written without its escape, and named another place."""
    posting = question("wire", {"a/b": 1}, pinned=["a/b", "/c"], schema=Size)
    action = posting.body["actions"][0]
    assert action["pinned"] == ["/a~1b", "/c"]
    assert action["schema"]["title"] == "Size"
    call = ToolCall(id="wire", tool="wire", call="call-1", arguments={"to/from": "ACME"})
    [asked] = make_card({"pinned": ["to/from"]}, "teller", [call]).actions
    assert asked.pinned == ["/to~1from"]


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ({"op": "replace", "path": "/to/a~1b/0", "value": 2}, "to.a/b.0 is now 2"),
        ({"op": "add", "path": "/cc", "value": ["x"]}, "cc was added: ['x']"),
        ({"op": "remove", "path": "/cc"}, "cc was taken out"),
        ({"op": "replace", "path": "", "value": {}}, "all of it is now {}"),
    ],
)
def test_an_edit_is_told_in_words(op: dict[str, Any], words: str) -> None:
    assert in_words([op]) == [words]


@pytest.mark.parametrize(
    ("url", "token"), [("", "hp_x"), ("ftp://x", "hp_x"), ("http://x", ""), ("http://x", "hp_\nx")]
)
def test_what_cannot_work_is_said_when_the_client_is_made(
    monkeypatch: pytest.MonkeyPatch, url: str, token: str
) -> None:
    monkeypatch.delenv("HOLDPOINT_URL", raising=False)
    monkeypatch.delenv("HOLDPOINT_TOKEN", raising=False)
    with pytest.raises(errors.NotConfigured) as refused:
        Holdpoint(url, token)
    assert not token or token not in str(refused.value)
    assert Holdpoint("https://host/holdpoint/api/", "hp_a").url == "https://host/holdpoint"


def test_both_clients_have_the_same_methods() -> None:
    called, awaited = ({name for name in dir(kind) if name[0] != "_"} for kind in (Holdpoint, AsyncHoldpoint))
    assert called == awaited


def test_a_heartbeat_that_is_refused_while_a_request_is_under_way_does_not_tell_of_a_loss() -> None:
    lost: list[Exception] = []
    held = Held(Clock().api(), 2, 3, 30.0, on_lost=lost.append, stops=[lambda: None])
    refused = reply(409, {"code": "stale_token", "detail": "The run waits for people."})
    op = beating(held)
    held.at_work = 1
    assert isinstance(next(op), Pause)
    assert isinstance(op.send(None), Send)
    assert isinstance(op.send(refused), Pause)
    assert (held.lost, lost) == (None, [])
    held.at_work = 0
    op.send(None)
    with pytest.raises(StopIteration):
        op.send(refused)
    assert [held.lost] == lost
    with pytest.raises(errors.StaleToken):
        held.check()


def test_what_cannot_be_sent_is_refused_at_once() -> None:
    clock = Clock()
    for value in (float("nan"), {"deep": [float("inf")]}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            clock.run(post_gate(clock.api(), question("wire", {"amount": value})), [Lost("")])
        assert result_as_json(value) == repr(value)
    for key in ("invoice é", "invoice 7", "two\nlines", "x" * 201):
        with pytest.raises(ValueError, match="1 to 200 printable ASCII"):
            clock.run(post_gate(clock.api(), question("wire", {}, key=key)), [Lost("LocalProtocolError")])
    assert clock.sent == []


def test_a_program_is_heard_of_before_people_are_told_that_it_is_gone() -> None:
    for lease, pause in ((30.0, 10.0), (3600.0, 30.0)):
        assert next(beating(Held(Clock().api(), 2, 5, lease))) == Pause(pause)


def test_a_step_of_a_plan_has_the_servers_options_and_defaults() -> None:
    known = StepBody.model_validate({"name": "draft"})
    assert Step(name="draft").model_dump(mode="json") == known.model_dump(mode="json")


VALUE: Any = {"a/b": [{"~1": "found"}], "": 0}


@pytest.mark.parametrize(
    ("pointer", "parts", "there"),
    [
        ("", [], VALUE), ("/", [""], 0), ("/a~1b/0/~01", ["a/b", "0", "~1"], "found"),
        ("/a~1b/1", ["a/b", "1"], MISSING), ("/a", ["a"], MISSING),
    ],
)  # fmt: skip
def test_a_pointer_is_read_and_written_alike(pointer: str, parts: list[str], there: Any) -> None:
    """The first part of what is none was dropped: a reference to `#anchor` was one to the whole schema."""
    assert json_pointer.parts_of(pointer) == parts
    assert json_pointer.pointer_to(*parts) == pointer
    assert json_pointer.get(VALUE, pointer) == there
    with pytest.raises(ValueError, match="'anchor' is no JSON Pointer"):
        json_pointer.parts_of("anchor")
    assert json_pointer.get(VALUE, "anchor") is MISSING


ROOT = Path(__file__).resolve().parent.parent.parent
ORDERS = re.compile(
    r"\b(ask|try|send|come|call)\b[^.]*\bagain\b[^.]*\b(after|at|later|then|when|until|in|once) ?", re.IGNORECASE
)
NOW = datetime(2026, 3, 2, 23, 40, 30, tzinfo=UTC)
UNTIL = NOW + timedelta(minutes=10)
KNOWN: dict[str, Any] = {"gate": 7, "run": 3, "url": "http://h/gates/7/"}


def ended(kind: str, **more: Any) -> Gate:
    """A gate about one payment that ended so."""
    ending = {"kind": kind, "by": "Ann", "at": NOW, "feedback": "Not this month", **more}
    made: Any = Gate
    gate: Gate = made.model_construct(outcome=Ending.model_validate(ending))
    return gate


def verdict(kind: Any) -> str:
    """What an adapter tells of a call that does not run."""
    return Verdict(id="1", tool="pay", call="c", kind=kind, arguments={}, asked={}, by="Ann", reason="No").words


def of_the_server(refusal: AskedTooOften, status: int = 429) -> str:
    """What an MCP client and the hook tell of a refusal of the server's."""
    return asking.in_trouble(make_problem(status, {"detail": str(refusal), "code": refusal.code}))


SAID = {
    "rejected": str(gate_refusal(ended("rejected"), ["pay"], KNOWN)),
    "expired": str(gate_refusal(ended("expired"), ["pay"], KNOWN)),
    "withdrawn": str(gate_refusal(ended("withdrawn"), ["pay"], KNOWN)),
    "a call that was rejected": verdict("reject"),
    "a call that nobody decided": verdict("expired"),
    "a call of a graph that nobody decided": NOBODY,
    "rejected twice": of_the_server(AskedTooSoon(7, 2, now=NOW, until=UNTIL)),
    "asked too often": of_the_server(AskedTooOften("payouts", 120, "default", now=NOW, until=UNTIL)),
    "too many requests": asking.in_trouble(
        make_problem(429, {"detail": "More than 9 requests a minute. The next is answered in 8 s."})
    ),
    "no answer": asking.in_trouble(errors.Unreachable("No answer within 60 s.")),
    "an outage": asking.in_trouble(make_problem(503, {"detail": "The disk is full."})),
    "an answer that came too late": server.LATE,
}


@pytest.mark.parametrize("told", SAID.values(), ids=list(SAID))
def test_it_says_what_to_do_instead_and_orders_no_other_try(told: str) -> None:
    assert INSTEAD in told
    assert not ORDERS.search(told.replace(INSTEAD, ""))


def test_server_and_both_clients_say_the_same_by_the_word_for_it() -> None:
    kinds = {"rejected": errors.Rejected, "expired": errors.Expired, "withdrawn": errors.Withdrawn}
    assert {kind: type(gate_refusal(ended(kind), ["pay"], KNOWN)) for kind in kinds} == kinds
    assert str(AskedTooSoon(7, 2, now=NOW, until=UNTIL)).endswith(f"{INSTEAD} This holds until 23:50:30 UTC.")
    assert AskedTooOften.instead == INSTEAD
    assert f'"{INSTEAD}"' in (ROOT / "clients/typescript/src/endings.ts").read_text()
