"""The pending interrupts of a graph as questions, each in the form that it was asked in, and people's answers. Pure.

The forms, by the value of the interrupt:

    batched     LangChain's HITLRequest: {"action_requests": […], "review_configs": […]}; a question for each call
    per_call    LangChain's {"type": "tool_approval", …}
    inbox       Agent Inbox's HumanInterrupt: {"action_request": {…}, "config": {…}}
    inboxes     a list of those, as older programs send it
    answer      anything else: the answer is filled in, by the interrupt's `response_schema` if it has one
    breakpoint  no interrupt: the graph stops before or after a node, as it was compiled to

The graph's answer is made of the arguments that people approved: an edit names them, and an approval means those that
were asked about, since the interrupted node reads the same state again. A question's `decided` is the verdict on it,
with the `reason` of a rejection and the `response` given instead; "expired" where nobody decided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.errors import is_invalid_resume
from pydantic import BaseModel, Field, ValidationError

from ..endings import INSTEAD, not_done
from ..json_pointer import pointer_to, resolve_references

EXPIRED = "expired"
APPROVE, EDIT, REJECT, RESPOND = "approve", "edit", "reject", "respond"
BATCHED, PER_CALL, INBOX, INBOXES, ANSWER = "batched", "per_call", "inbox", "inboxes", "answer"
BREAKPOINT = "breakpoint"
# What an inbox allows, by the member of its configuration.
OFFERS = {APPROVE: "allow_accept", EDIT: "allow_edit", REJECT: "allow_ignore", RESPOND: "allow_respond"}
TITLE = 120  # characters
ASKS = ("question", "message", "prompt", "title", "description", "instruction")  # keys of a question in a dict
USUAL = "Tool execution requires approval"
NOBODY = not_done("Nobody decided in time, so the call did not run. This is not a rejection")
TEXT: dict[str, Any] = {"type": "string", "title": "Answer", "format": "multiline"}


class GraphQuestion(BaseModel):
    """One thing that the graph asks: an interrupt, or one of the calls that an interrupt asks about."""

    id: str  # the interrupt's; with the call's number where it asks about several
    interrupt: str = ""  # "" where the graph stops at a breakpoint
    form: str
    name: str = ""  # the tool's own
    graph: str = ""  # the namespace of the graph whose model made the call; "" for the root
    call: str = ""  # the id that the model gave the call, where it is known
    tool: str  # the same as an identifier
    title: str
    description: str = ""
    node: str = ""  # which runs again from its start
    asked: Any = None  # the arguments as the graph proposed them
    arguments: Any = None  # as they are now: reviewers edit them
    takes: dict[str, Any] = Field(default_factory=dict)  # the JSON Schema of the arguments
    allowed: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)  # pointers into the arguments that have to be filled in
    fault: str = ""  # why the last answer was not taken
    decided: dict[str, Any] | None = None  # the verdict, where others of the same interrupt still wait


class Pending(NamedTuple):
    """A pending interrupt: its id, value, response schema (JSON Schema or None), and the node that raised it.

    `graph`: the namespace of that node's graph. `calls`: the ids of the tool calls that it asks about, in order.
    """

    id: str
    value: Any
    schema: Any
    node: str
    graph: str = ""
    calls: Sequence[str] = ()


def questions_in(asked: Pending, schemas: Mapping[str, Any]) -> Iterator[GraphQuestion]:
    """Yield the questions of one interrupt. `schemas`: the JSON Schema of each known tool's arguments, by name.

    What allows no decision that is known here is asked as any other value: its answer is filled in.
    """
    made = [*_calls(asked, schemas)]
    yield from made if made and all(question.allowed for question in made) else [_answer(asked)]


def _calls(asked: Pending, schemas: Mapping[str, Any]) -> Iterator[GraphQuestion]:
    value = asked.value
    if _is_batched(value):
        requests = value["action_requests"]
        configs = {config["action_name"]: config for config in value["review_configs"]}
        for number, request in enumerate(requests):
            name, config = request["name"], configs.get(request["name"], {})
            schema = config.get("args_schema") or schemas.get(name) or {}
            allowed = config.get("allowed_decisions") or [APPROVE, EDIT, REJECT]
            words = request.get("description", "")
            yield _call(asked, BATCHED, name, request["args"], words, schema, allowed, number, len(requests))
    elif _is_per_call(value):
        yield _per_call(asked, schemas)
    elif inboxes := _inboxes(value):
        form = INBOX if isinstance(value, dict) else INBOXES
        for number, inbox in enumerate(inboxes):
            name, arguments = inbox["action_request"]["action"], inbox["action_request"].get("args") or {}
            allowed = [verdict for verdict, member in OFFERS.items() if inbox["config"].get(member)]
            words, schema = inbox.get("description", ""), schemas.get(name, {})
            yield _call(asked, form, name, arguments, words, schema, allowed, number, len(inboxes))


def calls_in(value: Any) -> list[tuple[str, Any, str]]:
    """List the tool calls that an interrupt's value asks about, as (name, arguments, id or "")."""
    if _is_batched(value):
        return [(request["name"], request["args"], "") for request in value["action_requests"]]
    if _is_per_call(value):
        return [(value["name"], value["args"], value["tool_call_id"])]
    requests = [inbox["action_request"] for inbox in _inboxes(value)]
    return [(request["action"], request.get("args") or {}, "") for request in requests]


def _is_batched(value: Any) -> bool:
    """Tell whether it is a HITLRequest; a malformed one is shown as any other value, and answered as one."""
    if not isinstance(value, dict):
        return False
    requests, configs = value.get("action_requests"), value.get("review_configs")
    return (
        isinstance(requests, list)
        and bool(requests)
        and all(map(_is_call, requests))
        and isinstance(configs, list)
        and all(isinstance(config, dict) and isinstance(config.get("action_name"), str) for config in configs)
    )


def _is_per_call(value: Any) -> bool:
    return _is_call(value) and value.get("type") == "tool_approval" and isinstance(value.get("tool_call_id"), str)


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("args"), dict)


def _per_call(asked: Pending, schemas: Mapping[str, Any]) -> GraphQuestion:
    value, allowed, schema = asked.value, [], schemas.get(asked.value["name"], {})
    for branch in _branches(asked.schema or {}):
        part = branch.get("properties", {}).get("type", {})
        kind = str(part.get("const") or next(iter(part.get("enum", [])), ""))
        allowed += [kind] if kind else []
        if kind == EDIT and (found := _edited_arguments(branch, asked.schema)):
            schema = schema or found
    allowed = allowed or [APPROVE, EDIT, REJECT]
    return _call(asked, PER_CALL, value["name"], value["args"], value.get("description"), schema, allowed)


def _call(
    asked: Pending, form: str, name: str, arguments: Any, description: Any, schema: Any, allowed: Sequence[str],
    number: int = 0, count: int = 1,
) -> GraphQuestion:  # fmt: skip
    """Return the question about one call, the `number`th of so many that the interrupt asks about."""
    # Without what LangChain puts there of itself, since the action shows the call.
    words = str(description or "").removesuffix(f"Tool: {name}\nArgs: {arguments}").strip().removeprefix(USUAL).strip()
    return GraphQuestion(
        id=f"{asked.id}.{number}" if count > 1 else asked.id, interrupt=asked.id, form=form, name=name,
        tool=identifier(name), title=in_words(name), node=asked.node, graph=asked.graph,
        call=asked.calls[number] if number < len(asked.calls) else "",
        description=words, asked=arguments, arguments=arguments, takes=dict(schema),
        allowed=[verdict for verdict in (APPROVE, EDIT, REJECT, RESPOND) if verdict in allowed],
    )  # fmt: skip


def _is_inbox(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("action_request"), dict)
        and isinstance(value.get("config"), dict)
        and isinstance(value["action_request"].get("action"), str)
    )


def _inboxes(value: Any) -> list[Any]:
    """Return the HumanInterrupts that a value is, or has in a list; none if it is something else."""
    several = value if isinstance(value, list) else [value]
    return several if all(map(_is_inbox, several)) else []


def _answer(asked: Pending) -> GraphQuestion:
    title, description = _title_and_text(asked.value)
    schema = asked.schema if isinstance(asked.schema, dict) else None
    if schema is not None and schema.get("type") == "object" and schema.get("properties"):
        begun = {name: _begun(resolve_references(part, schema)) for name, part in schema["properties"].items()}
        arguments = {name: value for name, value in begun.items() if value is not None}
        missing = [pointer_to(name) for name in schema.get("required", []) if _is_empty(begun.get(name))]
    else:
        shown = {name: part for name, part in (schema or TEXT).items() if name != "$defs"}
        arguments = {"answer": _begun(shown)}
        missing = ["/answer"] if _is_empty(arguments["answer"]) else []
        defs = {"$defs": schema["$defs"]} if schema and "$defs" in schema else {}
        schema = {"type": "object", "properties": {"answer": shown}, "required": ["answer"], **defs}
    return GraphQuestion(
        id=asked.id, interrupt=asked.id, form=ANSWER, tool=identifier(asked.node or "answer"), title=title,
        description=description, node=asked.node, asked=arguments, arguments=arguments, takes=schema,
        allowed=[EDIT] if missing else [APPROVE, EDIT], missing=missing,
    )  # fmt: skip


def _begun(schema: Mapping[str, Any]) -> Any:
    """Return the value with which a field begins: its default, or an empty text; None for nothing."""
    return schema["default"] if "default" in schema else "" if schema.get("type") == "string" else None


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value in ([], {})


def _title_and_text(value: Any) -> tuple[str, str]:
    """Return the title and the whole text of a question that may be anything."""
    if isinstance(value, dict):
        asks = next((name for name in ASKS if isinstance(value.get(name), str) and value[name].strip()), "")
        words = value.get(asks, "")
        whole = "\n".join(f"{name}: {_as_text(member)}" for name, member in value.items() if name != asks)
    else:
        words = value if isinstance(value, str) else ""
        whole = _as_text(value)
    line = " ".join(words.split()) or "Answer the graph"
    if len(line) > TITLE:
        return line[: TITLE - 1] + "…", "\n".join(filter(None, dict.fromkeys([words, whole])))
    return line, "" if whole == line else whole


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _branches(schema: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives of a union's JSON Schema, with references resolved; the schema itself for no union."""
    found = schema.get("oneOf") or schema.get("anyOf") or [schema]
    return [resolve_references(branch, schema) for branch in found]


def _edited_arguments(branch: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    action = resolve_references(branch.get("properties", {}).get("edited_action", {}), whole)
    arguments = resolve_references(action.get("properties", {}).get("args", {}), whole)
    return {**arguments, **({"$defs": whole["$defs"]} if "$defs" in whole and "$ref" in json.dumps(arguments) else {})}


def identifier(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9_.:-]", "_", name)[:100]
    return made if re.match(r"[A-Za-z0-9_]", made) else f"_{made}"[:100]


def in_words(name: str) -> str:
    """Return a tool's name as a title: "send_mail" is "Send mail"."""
    words = re.sub(r"[_-]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def takes_silence(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that nobody decided in time."""
    return bool({REJECT, RESPOND} & set(question.allowed))


def takes_refusal(question: GraphQuestion) -> bool:
    """Tell whether the graph can be told that a call was refused."""
    return REJECT in question.allowed


def refusal_of(error: ValidationError) -> str:
    """Return why the graph did not take an answer. Raises any other error."""
    if not is_invalid_resume(error):
        raise error
    return "; ".join(fault["msg"] for fault in error.errors(include_url=False))


def answer_to(mine: Sequence[GraphQuestion]) -> Any:
    """Return the answer to one interrupt, of which these are all questions."""
    first = mine[0]
    if first.form == BATCHED:
        return {"decisions": [_decision(question) for question in mine]}
    if first.form == PER_CALL:
        return _decision(first)
    if first.form in (INBOX, INBOXES):
        return [_response(question) for question in mine]
    if first.form == BREAKPOINT:
        return True
    return _filled_in(first)


def _decision(question: GraphQuestion) -> dict[str, Any]:
    verdict = _verdict(question)
    if verdict == EDIT:
        return {"type": "edit", "edited_action": {"name": question.name, "args": question.arguments}}
    if verdict == RESPOND:
        return {"type": "respond", "message": _response_text(question)}
    return {"type": "reject", "message": reason(question)} if verdict == REJECT else {"type": "approve"}


def _response(question: GraphQuestion) -> dict[str, Any]:
    verdict = _verdict(question)
    if verdict == EDIT:
        return {"type": "edit", "args": {"action": question.name, "args": question.arguments}}
    if verdict == RESPOND:
        return {"type": "response", "args": _response_text(question)}
    return {"type": "ignore" if verdict == REJECT else "accept", "args": None}


def _verdict(question: GraphQuestion) -> str:
    """Return the verdict; an expired question is refused, or answered where it takes no refusal."""
    verdict = str((question.decided or {})["verdict"])
    if verdict != EXPIRED:
        return verdict
    return REJECT if takes_refusal(question) else RESPOND


def _response_text(question: GraphQuestion) -> str:
    decided = question.decided or {}
    return NOBODY if decided["verdict"] == EXPIRED else str(decided.get("response", ""))


def reason(question: GraphQuestion) -> str:
    """Return what the model is told of a refusal."""
    decided = question.decided or {}
    if decided["verdict"] == EXPIRED:
        return NOBODY
    return " ".join(filter(None, [str(decided.get("reason", "")).strip(), INSTEAD]))


def _filled_in(question: GraphQuestion) -> Any:
    """Return the answer that was filled in. A text that is no answer to a schema may be JSON, such as `true`."""
    if question.takes.get("required") != ["answer"] or set(question.takes.get("properties", {})) != {"answer"}:
        return question.arguments
    value = question.arguments["answer"]
    if question.takes["properties"]["answer"] != TEXT or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
