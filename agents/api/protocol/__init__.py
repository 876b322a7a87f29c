"""Parts shared by all addresses of the API: authentication, bodies, problems, keys, rates and waiting."""

from .addresses import AgentName, GateId, RunId, Seq, gate_page
from .auth import actor_of, confirmation_of, needs, token_of
from .exact_json import answer
from .idempotency_keys import Key, kept, once, own
from .members import Hex, Text, known, one_of, optional, or_null
from .paging import Page, Paging
from .problem_details import Fault, problem
from .schemas import ApiSchema, Described

__all__ = [
    "AgentName", "ApiSchema", "Described", "Fault", "GateId", "Hex", "Key", "Page", "Paging", "RunId", "Seq", "Text",
    "actor_of", "answer", "confirmation_of", "gate_page", "kept", "known", "needs", "once", "one_of", "optional",
    "or_null", "own", "problem", "token_of",
]  # fmt: skip
