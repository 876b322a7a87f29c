"""No export of the audit holds a secret of a run, as it is or in any of the usual encodings."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator
from html import escape
from urllib.parse import quote

import pytest

from approvals.audit import exporting
from approvals.models import Gate
from checkpoints.actors import OPERATOR
from checkpoints.audit.filters import AuditFilters
from checkpoints.events import event_log
from checkpoints.models import Event, Run
from checkpoints.values.canonical_json import encode_canonical
from tests.checkpoints.audit.sealed_events import seal_all
from tests.factories.driven_runs import advance_to_rest, decide, open_gate
from tests.harness.signed_in_clients import signed_in

from .vault_agent import KEY, SECRETS
from .vault_runs import make_people, make_run, member

ANOTHER = "another-77aa\u00e9<&>"  # what a reviewer puts in a secret's place, with what encodings change


def encodings(secret: str) -> Iterator[tuple[str, bytes]]:
    """The secret as it is, and as it may stand in something else."""
    plain = secret.encode()
    yield "plain", plain
    yield "JSON", json.dumps(secret).strip('"').encode()
    yield "JSON twice", json.dumps(json.dumps(secret)).strip('\\"').encode()
    yield "HTML", escape(secret).encode()
    yield "URL", quote(secret).encode()
    yield "UTF-16", secret.encode("utf-16-le")
    yield "reversed", plain[::-1]
    yield "compressed", zlib.compress(plain)
    for at in range(3):  # wherever it begins within three bytes, less what its neighbours share
        text = base64.b64encode(b"\0" * at + plain)[(0, 2, 3)[at] : -4]
        yield from ((f"base64 at {at}", text), (f"base64url at {at}", text.translate(bytes.maketrans(b"+/", b"-_"))))
    for name, content in (("", plain), (" of the JSON", encode_canonical(secret))):
        yield f"hex{name}", content.hex().encode()
        yield f"SHA-256{name}", hashlib.sha256(content).hexdigest().encode()
        yield f"SHA-256 in base64{name}", base64.b64encode(hashlib.sha256(content).digest())[:-1]


def exported(format: str, **filters: str) -> bytes:
    """An export with all that people wrote."""
    return b"".join(exporting.prepare(AuditFilters.read(filters), format=format, texts=True, by=OPERATOR).lines)


def found_in(content: bytes, secrets: tuple[str, ...]) -> list[str]:
    """Which secret stands in it, and how."""
    return [f"{each}, {how}" for each in secrets for how, form in encodings(each) if form in content]


@pytest.fixture
def run(ledger: str) -> Run:
    """A run with its whole story: an edit of secrets, a reveal, a failure that tells one."""
    team = make_people(whole=True)
    reader = member(team, reveals=True)
    run = make_run(team, ledger, note="fail")
    client = signed_in(reader)
    gate = open_gate(run)
    assert client.post(f"/runs/{run.pk}/checkpoints/2/reveals/", {"at": "/token"}).status_code == 200
    action = gate.standing().card.action("pay")
    assert action is not None
    changed = {**action.arguments, "amount": "13.00", "token": ANOTHER}
    decide(run, "edit", by=reader, arguments={"pay": changed}, comment="I put in another one")
    return advance_to_rest(run)


def test_the_encodings_are_found_where_they_are() -> None:
    for how, form in encodings(KEY):
        assert found_in(b"before " + form + b" after", (KEY,)), how


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_an_export_of_a_run_with_secrets_holds_none_of_them(run: Run, format: str) -> None:
    assert Gate.objects.filter(run=run).exists()
    assert Event.objects.filter(run_id=run.pk, kind="secret.revealed").exists()
    seal_all()
    content = exported(format, run=f"R-{run.pk}")
    kinds = set(Event.objects.filter(run_id=run.pk).exclude(kind="checkpoint.saved").values_list("kind", flat=True))
    assert {"run.started", "gate.opened", "gate.decided", "secret.revealed"} <= kinds
    assert [kind for kind in kinds if kind.encode() not in content] == []
    assert found_in(content, (*SECRETS, ANOTHER)) == []


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_secret_that_stood_in_an_event_would_be_found(run: Run, format: str) -> None:
    """The search is good for something: what a broken writer would record is there, and seen."""
    data = {"wrong": [base64.b64encode(KEY.encode()).decode()]}
    event_log.record("test.said", subject=f"run:{run.pk}", by=OPERATOR, run=run, data=data)
    seal_all()
    assert found_in(exported(format, run=f"R-{run.pk}"), (KEY,)) != []
