"""Idempotency keys: a request that is sent again with its key gets the same answer, and is done once.

The key, the work and the answer are one transaction. A refused request leaves nothing behind, not even its key; two
that come at once wait for each other at the key's row.

An agent's key is good for all of its tokens, so that one may be replaced while a request is sent again. It is stored
under the name of the token that came first, and looked for under those of all tokens of the agent in that team,
revoked ones too; requests of the agent with the same key wait for each other at a lock, since no row would stop two
tokens. What may be handed out by a token is checked before: the operation's scope, and its owner's rights.

Work that cannot be one transaction, because it waits for a worker or for its own commit, uses `keep_answer`: the
key is claimed before the work and the answer written after it, while others with the key wait. If the process dies in
between, the work knows its `own_key`.

Of some requests only a part `binds`: a model that asks again for the same words it otherwise, and it is the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from ninja import HeaderEx, P

from agents.api.protocol.auth import token_of, who_asks
from agents.models import Answer
from agents.work_errors import KeyRefused, KeyReused
from checkpoints.postgresql.sql import run_sql
from checkpoints.values.canonical_json import encode_canonical

PRINTABLE = re.compile(r"[\x21-\x7e]{1,200}")
REPLAYED = "Idempotency-Replayed"
_CLAIM = """
INSERT INTO agents_answer (who, key, request, binds, status, body, media_type, location)
SELECT $1::text, $2::text, $3::bytea, $4::bytea, 0, ''::bytea, '', '' WHERE NOT EXISTS (
  SELECT FROM agents_answer WHERE key = $2::text AND who = ANY(ARRAY(
    SELECT 'token:' || id FROM agents_token WHERE team_id = $5::int AND agent = $6::text
  ))
)
ON CONFLICT DO NOTHING RETURNING id
"""
_FIND = """
SELECT id FROM agents_answer WHERE key = $2::text AND who = ANY(ARRAY(
  SELECT $1::text UNION ALL SELECT 'token:' || id FROM agents_token WHERE team_id = $3::int AND agent = $4::text
)) ORDER BY who <> $1::text LIMIT 1
"""
_LOCK, _UNLOCK = (f"SELECT {name}(hashtextextended($1, 0))" for name in ("pg_advisory_lock", "pg_advisory_unlock"))
_IN_TURN = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_KEEP = "UPDATE agents_answer SET status = $2::smallint, body = $3, media_type = $4, location = $5 WHERE id = $1"

_WORDS = (
    "A key of your choice: the same request with the same key is carried out once and gets the same answer. A "
    "different request with the same key gets 409."
)
_NAME = "Idempotency-Key"
_KEY = P(default="", alias=_NAME, title=_NAME, description=_WORDS, max_length=200, example="9c1f0f5e-nightly-17")
Key = HeaderEx[str, _KEY]


def do_once(request: HttpRequest, key: str, do: Callable[[], HttpResponse], *, binds: Any = None) -> HttpResponse:
    """Run `do` in one transaction with the key and return its answer; a repeat gets the first answer.

    `binds`: the part of the request, as JSON, that makes it the same; None: all of it. Raises KeyReused, KeyRefused,
    and whatever `do` raises.
    """
    if not key:
        with transaction.atomic():
            return do()
    asked = _asked(request, key)
    part = None if binds is None else _digest(request, encode_canonical(binds))
    with transaction.atomic():
        row, before = _claim(request, key, asked, part)
        if before:
            return _same(row, asked, part)
        answer = do()
        if answer.status_code >= 400:
            transaction.set_rollback(True)
            return answer
        return _written(row.pk, answer)


def keep_answer(request: HttpRequest, key: str, do: Callable[[], HttpResponse]) -> HttpResponse:
    """Run `do`, which commits by itself, and return its answer; a repeat gets the first answer.

    The key is claimed before, so that it stays this request's even if the process dies; `do` names its work by
    `own_key` and finds it done. Raises KeyReused, KeyRefused, and whatever `do` raises.
    """
    if not key:
        return do()
    asked = _asked(request, key)
    with _alone(f"{who_asks(request)} {key}"):
        row, _ = _claim(request, key, asked, None)
        if row.status or bytes(row.request) != asked:
            return _same(row, asked)
        try:
            answer = do()
        except Exception:
            row.delete()
            raise
        return _written(row.pk, answer)


def own_key(request: HttpRequest, key: str) -> str:
    """Return the key under which the work records itself: of this request of this person, and no other."""
    if not key:
        return ""
    named = "\n".join((who_asks(request), key)).encode() + _digest(request, request.body)
    return "api:" + hashlib.sha256(named).hexdigest()


def free_key(request: HttpRequest, key: str, *, location: str) -> None:
    """Forget the sender's key, if it is that of this place: the next request with it is carried out anew."""
    Answer.objects.filter(pk=_stored_under(request, key), location=location).delete()


def _claim(request: HttpRequest, key: str, asked: bytes, part: bytes | None) -> tuple[Answer, bool]:
    """Return the key's row, and whether it was there before. One that was freed between the looks is claimed anew."""
    team, agent = _agent_of(request)
    if agent:
        run_sql(_IN_TURN, [f"key of agent {team} {agent} {key}"])
    while True:
        if made := run_sql(_CLAIM, [who_asks(request), key, asked, part, team, agent]):
            return Answer(pk=made[0][0], request=asked), False
        if row := Answer.objects.filter(pk=_stored_under(request, key)).first():
            return row, True


def _stored_under(request: HttpRequest, key: str) -> int:
    """Return the row of the sender's key; 0 for none.

    Of an agent that of whichever token came first, but the sender's own before it: the version before stored each.
    """
    found = run_sql(_FIND, [who_asks(request), key, *_agent_of(request)])
    return int(found[0][0]) if found else 0


def _agent_of(request: HttpRequest) -> tuple[int | None, str]:
    """Return the team and the agent whose tokens share their keys; (None, "") for a person's sender."""
    token = token_of(request)
    return (token.team_id, token.agent) if token and token.agent else (None, "")


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Lock the name, waiting as long as a statement may. The lock is the session's: a process that dies releases it."""
    run_sql(_LOCK, [name])
    try:
        yield
    finally:
        if connection.connection is not None:
            run_sql(_UNLOCK, [name])


def _asked(request: HttpRequest, key: str) -> bytes:
    """Return the digest of the request. Raises KeyRefused."""
    if not PRINTABLE.fullmatch(key):
        raise KeyRefused
    return _digest(request, request.body)


def _written(row: int, answer: HttpResponse) -> HttpResponse:
    """Keep the answer for its key, and return it."""
    location = answer.headers.get("Location", "")
    run_sql(_KEEP, [row, answer.status_code, answer.content, answer["Content-Type"], location])
    return answer


def _digest(request: HttpRequest, body: bytes) -> bytes:
    """Return a digest of the method, path and body."""
    parts = (request.method or "", request.get_full_path(), hashlib.sha256(body).hexdigest())
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _same(row: Answer, asked: bytes, part: bytes | None = None) -> HttpResponse:
    if bytes(row.request) != asked and (part is None or row.binds is None or bytes(row.binds) != part):
        raise KeyReused
    answer = HttpResponse(bytes(row.body), status=row.status, content_type=row.media_type)
    if row.location:
        answer["Location"] = row.location
    answer[REPLAYED] = "true"
    return answer
