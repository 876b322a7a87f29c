"""Parts shared by all addresses of the API: authentication, bodies, problems, keys, rates and waiting."""

from .addresses import AgentName, GateId, RunId, Seq, gate_page
from .auth import actor_of, confirmation_of, require_scope, token_of
from .exact_json import answer_json
from .idempotency_keys import Key, do_once, keep_answer, own_key
from .members import Hex, Text, one_of, optional_one_of, or_null, refuse_unknown
from .paging import Page, Paging
from .problem_details import Fault, answer_problem
from .schemas import ApiSchema, Described

__all__ = [
    "AgentName",
    "ApiSchema",
    "Described",
    "Fault",
    "GateId",
    "Hex",
    "Key",
    "Page",
    "Paging",
    "RunId",
    "Seq",
    "Text",
    "actor_of",
    "answer_json",
    "answer_problem",
    "confirmation_of",
    "do_once",
    "gate_page",
    "keep_answer",
    "one_of",
    "optional_one_of",
    "or_null",
    "own_key",
    "refuse_unknown",
    "require_scope",
    "token_of",
]  # fmt: skip
