"""What every answer carries, what is closed, how files are served, and that what is streamed arrives whole."""

from __future__ import annotations

import json
import re
import zlib
from contextlib import suppress
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

import brotli  # type: ignore[import-untyped]
import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from approvals.live import consumer
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.events.event_log import Entry
from checkpoints.values import artifacts
from config.sign_in import accounts
from tests.conftest import SharedWeb
from tests.factories import ann, make_card, make_gate, make_run, make_state, make_team, make_user, unique
from tests.harness.examples import first_alone
from tests.harness.horizon import reached
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE

# Of the web server that takes little.
NARROW = {"HOLDPOINT_API_BODY_LIMIT": "20000", "HOLDPOINT_UPLOAD_LIMIT": "1000", "HOLDPOINT_REQUEST_TIMEOUT": "3"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)


def test_pages_forbid_everything_that_this_site_does_not_serve() -> None:
    answer = Client().get("/accounts/login/")
    assert answer["Content-Security-Policy"] == POLICY
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_nobody_makes_an_account_alone_and_the_administration_has_no_sign_in_of_its_own() -> None:
    """Its form counted no attempts, so that an administrator's password could be guessed there without end."""
    for path in ("signup/", "email/", "password/set/", "3rdparty/signup/", "login/code/confirm/"):
        assert Client().get(f"/accounts/{path}").status_code == 404
        assert Client().post(f"/accounts/{path}", {"username": "eve"}).status_code == 404
    User.objects.create_superuser("serving-root", password="a long enough phrase")
    form = {"username": "serving-root", "password": "a long enough phrase"}
    answer = Client().post("/admin/login/?next=/admin/", form)
    assert (answer.status_code, answer["Location"]) == (302, "/accounts/login/?next=%2Fadmin%2F")
    assert "sessionid" not in answer.cookies
    assert Client().get("/admin/")["Location"].startswith("/admin/login/")


def test_a_person_signs_in_by_name_and_gets_a_new_session() -> None:
    person, client = make_user("Ann", password="a long enough phrase"), Client()
    client.get("/accounts/login/")
    before = client.session.session_key
    answer = client.post("/accounts/login/", {"login": person.username, "password": "a long enough phrase"})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session.session_key != before
    assert client.cookies["sessionid"]["httponly"]


def tried(client: Client, name: str, password: str, address: str) -> bool:
    form = {"login": name, "password": password}
    return client.post("/accounts/login/", form, REMOTE_ADDR=address).status_code == 302


def test_nobody_is_kept_out_of_their_account_by_anothers_guesses() -> None:
    """Five wrong passwords from anywhere shut an account to its owner, for as long as somebody went on."""
    name, right = unique("guarded"), "a long enough phrase"
    User.objects.create_user(name, password=right)
    assert not any(tried(Client(), name, f"wrong {number}", "203.0.113.80") for number in range(6))
    assert not tried(Client(), name, right, "203.0.113.80"), "the guesser is refused, right or wrong"
    assert tried(Client(), name, right, "203.0.113.81")
    assert tried(Client(), name.upper(), right, "203.0.113.80") is False


def test_an_account_that_is_guessed_from_everywhere_opens_where_its_owner_has_signed_in_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts, "WRONG_ANYWHERE", "10/h/key")
    name, right = unique("guarded"), "a long enough phrase"
    User.objects.create_user(name, password=right)
    known = Client()
    assert tried(known, name, right, "203.0.113.90")
    known.post("/accounts/logout/")
    assert not any(tried(Client(), name, "wrong", f"198.51.100.{number}") for number in range(10))
    assert not tried(Client(), name, right, "203.0.113.91"), "guesses from very many addresses are stopped"
    assert tried(known, name, right, "203.0.113.92")
    cookie = known.cookies["hp-device"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/accounts/")
    forged = Client()
    forged.cookies["hp-device"] = cookie.value.replace(name, unique("other"))
    assert not tried(forged, name, right, "203.0.113.93")
    known.post("/accounts/logout/")
    assert not any(tried(known, name, f"wrong {number}", f"198.51.100.{number}") for number in range(6))
    assert not tried(known, name, right, "203.0.113.94"), "a browser that is known is counted by itself"


def test_guesses_from_the_same_address_do_not_shut_out_a_browser_that_is_known() -> None:
    """Ten guesses of any names a minute shut everybody out behind one proxy."""
    name, right, address = unique("guarded"), "a long enough phrase", "203.0.113.95"
    User.objects.create_user(name, password=right)
    known = Client()
    assert tried(known, name, right, address)
    known.post("/accounts/logout/")
    assert not any(tried(Client(), unique("nobody"), "wrong", address) for _ in range(10))
    assert not tried(Client(), name, right, address)
    assert tried(known, name, right, address)


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("/accounts/reauthenticate/", {"password": "wrong"}),
        ("/accounts/password/change/", {"oldpassword": "wrong", "password1": "another long one", "password2": "x"}),
    ],
)
def test_whoever_has_a_session_cannot_guess_its_password_without_end(address: str, form: dict[str, str]) -> None:
    client = Client(REMOTE_ADDR="203.0.113.96")
    client.force_login(User.objects.create_user(unique("guarded"), password="a long enough phrase"))
    assert [client.post(address, form).status_code for _ in range(12)][-1] == 429


def test_files_are_named_by_content_kept_for_ever_and_compressed_and_no_other_is_served(web: str) -> None:
    page = httpx.get(f"{web}/accounts/login/").text
    style = re.search(r"/static/css/main\.[0-9a-f]{12}\.css", page)
    assert style is not None
    answer = httpx.get(web + style[0], headers={"Accept-Encoding": "gzip"})
    assert answer.headers["cache-control"] == "max-age=315360000, public, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert httpx.post(web + style[0]).status_code == 405
    assert not {"etag", "last-modified"} & set(answer.headers), "nobody asks whether a lasting file changed"
    smaller = httpx.get(web + style[0], headers={"Accept-Encoding": "br, gzip"})
    assert (smaller.headers["content-encoding"], smaller.text) == ("br", answer.text)
    assert "@import" not in answer.text, "what it imports is asked for file by file"
    with httpx.Client() as client:
        for path in ("/static/absent.css", "/static/../config/settings.py", "/static/%2e%2e/x"):
            request = client.build_request("GET", web)
            request.url = request.url.copy_with(raw_path=path.encode())
            assert client.send(request).status_code == 404, path


def test_the_socket_refuses_another_origin(web: str) -> None:
    address, headers = web.replace("http", "ws") + "/ws/", {"Cookie": f"sessionid={session_of(make_user())}"}
    unreadable = "http://["  # it was a traceback in the server's log
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", web.replace("http", "https"), unreadable, ""):
        with (
            pytest.raises(InvalidStatus) as refused,
            connect(address, origin=Origin(origin) if origin else None, additional_headers=headers),
        ):
            pass
        assert refused.value.response.status_code == 403, origin


@pytest.mark.parametrize("frame", first_alone(['{"watch": ["run:%d"]}', "{"]))
def test_a_socket_that_sends_without_end_is_closed_and_its_sender_may_come_again(web: str, frame: str) -> None:
    """Each frame cost a look at the sender's access, and nothing bounded how many came."""
    address, headers = web.replace("http", "ws") + "/ws/", {"Cookie": f"sessionid={session_of(make_user())}"}
    frames = (frame.replace("%d", str(number)) for number in range(100 * consumer.AT_ONCE))
    with connect(address, origin=Origin(web), additional_headers=headers) as socket:
        with suppress(ConnectionClosed):
            for each in frames:
                socket.send(each)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    with connect(address, origin=Origin(web), additional_headers=headers) as socket:
        assert socket.ping().wait(PATIENCE)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_stranger_cannot_fill_the_disk_and_the_api_stops_reading_at_its_own_limit(
    shared_web: SharedWeb, chunked: bool
) -> None:
    """Bodies had no bound, and are written to the disk before anybody asks who sends them."""
    base = shared_web(NARROW)
    most = 2_621_440 + 4 * 1000
    assert httpx.post(f"{base}/nowhere/", content=b"x" * most).status_code == 404
    content = iter([b"x" * most, b"x"]) if chunked else b"x" * (most + 1)
    answer = httpx.post(f"{base}/nowhere/", content=content)
    assert (answer.status_code, answer.text) == (413, "This request is too large.\n")
    url, headers = f"{base}/api/runs/1/impacts", {"Content-Type": "application/json"}
    assert httpx.post(url, content=b" " * 20_000, headers=headers).status_code == 401
    content = iter([b" " * 20_000, b" "]) if chunked else b" " * 20_001
    answer = httpx.post(url, content=content, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
    assert answer.headers["cache-control"] == "no-store"
    assert "at most 20,000 bytes" in answer.json()["detail"]
    assert answer.json()["instance"] == "/api/runs/1/impacts"


ACCEPTED = "gzip, deflate, br, zstd"  # what Chromium and Firefox send
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


def test_an_export_arrives_whole(web: str) -> None:
    """Each 200 lines were a gzip member of their own, so browsers and `curl --compressed` kept the first 200."""
    team, by = make_team(), Actor("user:7", "Ann")
    entries = [Entry(kind="test.said", subject=f"test:{n}", by=by, team_id=team.pk, data={}) for n in range(MANY)]
    event_log.append_events(entries)
    reached()
    auditor = make_user("Olga Auditor", team, may=("checkpoints.view_audit",))
    form = {"format": "jsonl", "team": str(team.pk), "kind": "test.said"}
    _, content = received(web, "/audit/exports/", by=auditor, form=form)
    lines = content.decode().splitlines()
    assert json.loads(lines[-1])["end"]["events"] == MANY
    assert sum('"event":' in line for line in lines) == MANY


def test_a_file_of_a_gate_arrives_whole(web: str) -> None:
    content = b"a page of a scan, " * 100_000
    scan = artifacts.keep(content, "text/plain")
    team = make_team()
    gate = make_gate(run=make_run(team=team, state=make_state(order={"scan": scan})), card=make_card())
    reviewer = ann(team, gate.policy.team)
    assert received(web, f"/gates/{gate.pk}/artifacts/{scan['$artifact']}/", by=reviewer)[1] == content
    coding, page = received(web, "/accounts/login/")
    assert (coding, page.rstrip()[-7:]) == ("gzip", b"</html>")
