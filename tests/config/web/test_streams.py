"""What is streamed arrives whole in a browser, which decodes one gzip member and drops what follows it."""

from __future__ import annotations

import json
import re
import zlib
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import brotli  # type: ignore[import-untyped]
import pytest
from django.contrib.auth.models import Group, User

from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.values import artifacts
from tests.factories import ann, make_card, make_gate, make_run, make_state, make_team, make_user
from tests.harness.horizon import reached
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import session_of

ACCEPTED = "gzip, deflate, br, zstd"  # what Chromium and Firefox send
STREAMING = {"approvals/views/artifacts.py", "approvals/views/audit_orders.py"}
MANY = 700  # events: several pieces of an export


def received(base: str, path: str, *, by: User | None = None, form: dict[str, str] | None = None) -> tuple[str, bytes]:
    """The content's coding, and the content as a browser decodes it."""
    connection = HTTPConnection(urlsplit(base).netloc, timeout=60)
    headers = {"Accept-Encoding": ACCEPTED, "Origin": base}
    if by is not None:
        headers["Cookie"] = f"sessionid={session_of(by)}"
    if form is not None:
        token = "a" * 32
        headers |= {"Content-Type": "application/x-www-form-urlencoded"}
        headers["Cookie"] += f"; csrftoken={token}"
        form = {"csrfmiddlewaretoken": token, **form}
    connection.request("POST" if form else "GET", path, urlencode(form) if form else None, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    assert answer.status == 200, content
    coding = answer.headers.get("Content-Encoding", "identity")
    return coding, decoded(coding, content)


def decoded(coding: str, content: bytes) -> bytes:
    """The content without its coding; of several gzip members only the first."""
    if coding == "gzip":
        return zlib.decompressobj(wbits=31).decompress(content)
    if coding == "br":
        return bytes(brotli.decompress(content))
    assert coding == "identity", coding
    return content


def noted(team: Group) -> None:
    """Many events of one team, at once."""
    by = Actor("user:7", "Ann")
    for number in range(MANY):
        event_log.record("test.said", subject=f"test:{number}", by=by, team_id=team.pk, data={"n": number})
    reached()


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_export_arrives_whole(web: str, format: str) -> None:
    """Each 200 lines were a gzip member of their own, so browsers and `curl --compressed` kept the first 200."""
    noted(team := make_team())
    auditor = make_user("Olga Auditor", team, may=("checkpoints.view_audit",))
    form = {"format": format, "team": str(team.pk), "kind": "test.said"}
    _, content = received(web, "/audit/exports/", by=auditor, form=form)
    lines = content.decode().splitlines()
    if format == "csv":
        assert len(lines) == MANY + 1
    else:
        assert json.loads(lines[-1])["end"]["events"] == MANY
        assert sum('"event":' in line for line in lines) == MANY


def test_a_file_of_a_gate_arrives_whole(web: str) -> None:
    content = b"a page of a scan, " * 100_000
    scan = artifacts.keep(content, "text/plain")
    team = make_team()
    gate = make_gate(run=make_run(team=team, state=make_state(order={"scan": scan})), card=make_card())
    reviewer = ann(team, gate.policy.team)
    assert received(web, f"/gates/{gate.pk}/artifacts/{scan['$artifact']}/", by=reviewer)[1] == content


def test_a_page_and_a_static_file_arrive_whole_and_compressed(web: str) -> None:
    coding, page = received(web, "/accounts/login/")
    assert coding == "gzip"
    assert page.rstrip().endswith(b"</html>")
    style = re.search(r"/static/css/main\.[0-9a-f]{12}\.css", page.decode())
    assert style is not None
    assert received(web, style[0])[0] == "br"


def test_nothing_else_is_streamed() -> None:
    """A new stream belongs into the tests above."""
    named = {
        str(path.relative_to(ROOT))
        for room in ("agents", "approvals", "checkpoints", "config")
        for path in (ROOT / room).rglob("*.py")
        if re.search(r"StreamingHttpResponse\(|FileResponse\(", path.read_text())
    }
    assert named == STREAMING
