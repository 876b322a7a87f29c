"""The pending interrupts of a graph as questions, each in the form that it was asked in.

The forms, by the value of the interrupt:

    batched     LangChain's HITLRequest: {"action_requests": […], "review_configs": […]}; a question for each call
    per_call    LangChain's {"type": "tool_approval", …}
    inbox       Agent Inbox's HumanInterrupt: {"action_request": {…}, "config": {…}}
    inboxes     a list of those, as older programs send it
    answer      anything else: the answer is filled in, by the interrupt's `response_schema` if it has one
    breakpoint  no interrupt: the graph stops before or after a node, as it was compiled to
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from approvals.cards.action import APPROVE, EDIT, LATER, REJECT, RESPOND, is_empty
from checkpoints.values.json_pointer import join

from .channels import GraphQuestion

FORMS = BATCHED, PER_CALL, INBOX, INBOXES, ANSWER, BREAKPOINT = (
    "batched", "per_call", "inbox", "inboxes", "answer", "breakpoint",
)  # fmt: skip
TITLE = 120  # characters
ASKS = ("question", "message", "prompt", "title", "description", "instruction")  # keys of a question in a dict
USUAL = "Tool execution requires approval"
TEXT: dict[str, Any] = {"type": "string", "title": "Answer", "format": "multiline"}


class Pending(NamedTuple):
    """A pending interrupt: its id, value, response schema (JSON Schema or None), and the node that raised it."""

    id: str
    value: Any
    schema: Any
    node: str


def of(asked: Pending, schemas: Mapping[str, Any]) -> Iterator[GraphQuestion]:
    """Yield the questions of one interrupt. `schemas`: the JSON Schema of each known tool's arguments, by name."""
    value = asked.value
    if _is_batched(value):
        yield from _batched(asked, schemas)
    elif isinstance(value, dict) and value.get("type") == "tool_approval" and "tool_call_id" in value:
        yield _per_call(asked, schemas)
    elif _is_inbox(value):
        yield _inbox(asked, value, asked.id, INBOX, schemas)
    elif isinstance(value, list) and value and all(map(_is_inbox, value)):
        for number, each in enumerate(value):
            yield _inbox(asked, each, _numbered(asked.id, number, value), INBOXES, schemas)
    else:
        yield _answer(asked)


def stop(checkpoint: str, where: str, nodes: Sequence[str]) -> GraphQuestion:
    """Return the question of a breakpoint, `where`: "before" or "after" these nodes."""
    named = ", ".join(nodes)
    title = f"Go on {where} {named}"
    return GraphQuestion(
        id=checkpoint, form=BREAKPOINT, tool=_identifier(nodes[0]), title=title, node="", allowed=[APPROVE],
        description=f"The graph stops {where} {named}, as it was compiled to.",
    )  # fmt: skip


def carried(now: Sequence[GraphQuestion], before: Sequence[GraphQuestion], *, fault: str = "") -> list[GraphQuestion]:
    """Return the questions as they are now, with verdicts and faults of before that they still wait with.

    `fault`: why the graph did not take the last answers.
    """
    known = {each.id: each for each in before}
    now = [each.model_copy(update={"fault": fault}) for each in now]
    return [
        each.model_copy(update={"decided": was.decided, "fault": was.fault or fault, "arguments": was.arguments})
        if (was := known.get(each.id)) is not None and was.asked == each.asked and was.form == each.form
        else each
        for each in now
    ]


def _is_batched(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("action_requests"), list) and "review_configs" in value


def _batched(asked: Pending, schemas: Mapping[str, Any]) -> Iterator[GraphQuestion]:
    requests = asked.value["action_requests"]
    configs = {each["action_name"]: each for each in asked.value["review_configs"]}
    for number, each in enumerate(requests):
        config = configs.get(each["name"], {})
        schema = config.get("args_schema") or schemas.get(each["name"]) or {}
        allowed = config.get("allowed_decisions") or [APPROVE, EDIT, REJECT]
        id = _numbered(asked.id, number, requests)
        yield _call(asked, id, BATCHED, each["name"], each["args"], each.get("description", ""), schema, allowed)


def _per_call(asked: Pending, schemas: Mapping[str, Any]) -> GraphQuestion:
    value, allowed, schema = asked.value, [], schemas.get(asked.value["name"], {})
    for branch in _branches(asked.schema or {}):
        kind = _const(branch.get("properties", {}).get("type", {}))
        allowed += [kind] if kind else []
        if kind == EDIT and (found := _edited_arguments(branch, asked.schema)):
            schema = schema or found
    allowed = allowed or [APPROVE, EDIT, REJECT]
    return _call(asked, asked.id, PER_CALL, value["name"], value["args"], value["description"], schema, allowed)


def _call(
    asked: Pending, id: str, form: str, name: str, arguments: Any, description: Any, schema: Any, allowed: Sequence[str]
) -> GraphQuestion:
    return GraphQuestion(
        id=id, interrupt=asked.id, form=form, name=name, tool=_identifier(name), title=in_words(name), node=asked.node,
        description=_own_words(str(description or ""), name, arguments),
        asked=arguments, arguments=arguments, takes=dict(schema),
        allowed=[each for each in (APPROVE, EDIT, REJECT, RESPOND) if each in allowed],
    )  # fmt: skip


def _own_words(description: str, name: str, arguments: Any) -> str:
    """Return a description without what LangChain puts there of itself, since the action shows the call."""
    return description.removesuffix(f"Tool: {name}\nArgs: {arguments}").strip().removeprefix(USUAL).strip()


def _is_inbox(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("action_request"), dict)
        and isinstance(value.get("config"), dict)
        and "action" in value["action_request"]
    )


def _inbox(asked: Pending, value: Mapping[str, Any], id: str, form: str, schemas: Mapping[str, Any]) -> GraphQuestion:
    request, config = value["action_request"], value["config"]
    offered = {
        APPROVE: config.get("allow_accept"), EDIT: config.get("allow_edit"),
        REJECT: config.get("allow_ignore"), RESPOND: config.get("allow_respond"),
    }  # fmt: skip
    allowed = [verdict for verdict, allows in offered.items() if allows]
    name, arguments = str(request["action"]), request.get("args") or {}
    schema = schemas.get(name, {})
    return _call(asked, id, form, name, arguments, value.get("description", ""), schema, allowed)


def _answer(asked: Pending) -> GraphQuestion:
    title, description = _told(asked.value)
    schema = asked.schema if isinstance(asked.schema, dict) else None
    if schema is not None and schema.get("type") == "object" and schema.get("properties"):
        begun = {name: _begun(_resolved(part, schema)) for name, part in schema["properties"].items()}
        arguments = {name: value for name, value in begun.items() if value is not None}
        missing = [join("", name) for name in schema.get("required", []) if is_empty(begun.get(name))]
    else:
        shown = {name: part for name, part in (schema or TEXT).items() if name != "$defs"}
        arguments = {"answer": _begun(shown)}
        missing = ["/answer"] if is_empty(arguments["answer"]) else []
        defs = {"$defs": schema["$defs"]} if schema and "$defs" in schema else {}
        schema = {"type": "object", "properties": {"answer": shown}, "required": ["answer"], **defs}
    return GraphQuestion(
        id=asked.id, interrupt=asked.id, form=ANSWER, tool=_identifier(asked.node or "answer"), title=title,
        description=description, node=asked.node, asked=arguments, arguments=arguments, takes=schema,
        allowed=[EDIT] if missing else [APPROVE, EDIT], missing=missing,
    )  # fmt: skip


def _begun(schema: Mapping[str, Any]) -> Any:
    """Return the value with which a field begins: its default, or an empty text; None for nothing."""
    return schema["default"] if "default" in schema else "" if schema.get("type") == "string" else None


def _told(value: Any) -> tuple[str, str]:
    """Return the title and the whole text of a question that may be anything."""
    if isinstance(value, dict):
        asks = next((name for name in ASKS if isinstance(value.get(name), str) and value[name].strip()), "")
        said = value.get(asks, "")
        whole = "\n".join(f"{name}: {_said(each)}" for name, each in value.items() if name != asks)
    else:
        said = value if isinstance(value, str) else ""
        whole = _said(value)
    line = " ".join(said.split()) or "Answer the graph"
    if len(line) > TITLE:
        return line[: TITLE - 1] + "…", "\n".join(filter(None, dict.fromkeys([said, whole])))
    return line, "" if whole == line else whole


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _branches(schema: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives of a union's JSON Schema, with references resolved; the schema itself for no union."""
    found = schema.get("oneOf") or schema.get("anyOf") or [schema]
    return [_resolved(each, schema) for each in found]


def _resolved(part: Any, whole: Mapping[str, Any]) -> Any:
    if isinstance(part, dict) and (name := str(part.get("$ref", ""))).startswith("#/$defs/"):
        return _resolved(whole.get("$defs", {}).get(name.removeprefix("#/$defs/"), {}), whole)
    return part


def _const(part: Mapping[str, Any]) -> str:
    return str(part.get("const") or next(iter(part.get("enum", [])), ""))


def _edited_arguments(branch: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    action = _resolved(branch.get("properties", {}).get("edited_action", {}), whole)
    arguments = _resolved(action.get("properties", {}).get("args", {}), whole)
    return {**arguments, **({"$defs": whole["$defs"]} if "$defs" in whole and "$ref" in json.dumps(arguments) else {})}


def _numbered(id: str, number: int, several: Sequence[Any]) -> str:
    return f"{id}.{number}" if len(several) > 1 else id


def _identifier(name: str) -> str:
    made = re.sub(r"[^A-Za-z0-9_.:-]", "_", name)[:100]
    return made if re.match(r"[A-Za-z0-9_]", made) else f"_{made}"[:100]


def in_words(name: str) -> str:
    """Return a tool's name as a title: "send_mail" is "Send mail"."""
    words = re.sub(r"[_-]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def offered(question: GraphQuestion, *, several: bool) -> list[str]:
    """Return the verdicts that a question's action takes; of several, one may be left for later."""
    return [*question.allowed, *[LATER] * several]
