"""What a client of the payment sandbox may rely on, and the faults that it can ask for."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.examples import orders
from agents.examples.sandbox import __main__
from tests.factories import unique

from .conftest import World


def charge(sandbox: World, amount: str = "100.00") -> str:
    body = {"amount": amount, "currency": "EUR", "card": "4242"}
    answer = sandbox.http.post("/charges", json=body, headers={"Idempotency-Key": unique("charge")})
    assert answer.status_code == 201
    return str(answer.json()["id"])


def refunds_of(sandbox: World, paid: str) -> list[tuple[str, str]]:
    return sandbox.refunds(paid.removeprefix("ch_"))


def test_a_refund_can_be_read_by_its_id_its_key_and_its_charge(sandbox: World) -> None:
    paid, key = charge(sandbox), unique("a key")
    refund = sandbox.refund(key, paid, "10.00", reference="run 7").json()
    assert (refund["amount"], refund["currency"], refund["card"]) == ("10.00", "EUR", "4242")
    assert refund["status"] == "succeeded"
    assert sandbox.http.get(f"/refunds/{refund['id']}").json() == refund
    assert sandbox.http.get(f"/refunds/by-key/{key}").json() == refund
    taken_back = sandbox.refund(unique("key"), paid, "5.00").json()["id"]
    answers = [sandbox.http.post(f"/refunds/{taken_back}/cancel") for _ in range(3)]
    assert [answer.json()["status"] for answer in answers] == ["cancelled"] * 3
    facts = sandbox.http.get(f"/charges/{paid}").json()
    assert (facts["amount"], facts["currency"], facts["refunded"]) == ("100.00", "EUR", "10.00")
    refunds = [(refund["amount"], refund["status"], refund["reference"]) for refund in facts["refunds"]]
    assert refunds == [("10.00", "succeeded", "run 7"), ("5.00", "cancelled", "")]
    assert [sandbox.refund(unique("key"), paid, amount).status_code for amount in ("90.00", "0.01")] == [201, 422]


def test_one_key_is_one_refund_and_a_refusal_is_not_remembered(sandbox: World) -> None:
    paid, key = charge(sandbox), unique("key")
    refused = sandbox.refund(key, paid, "100.01")
    assert (refused.status_code, "more than the 100.00 EUR left" in refused.json()["error"]) == (422, True)
    first, second = sandbox.refund(key, paid, "10.00"), sandbox.refund(key, paid, "10.00")
    assert first.json() == second.json()
    assert (first.status_code, second.status_code) == (201, 200)
    assert sandbox.refund(key, paid, "10.01").status_code == 409
    assert sandbox.refund(key, paid, "10.00", reason="other").status_code == 409
    assert refunds_of(sandbox, paid) == [("10.00", "succeeded")]


def test_twenty_threads_make_one_refund_under_one_key_and_no_more_than_was_paid_under_their_own(sandbox: World) -> None:
    same, own = charge(sandbox), charge(sandbox, "35.00")
    sandbox.fault("refunds", "slow", times=40, seconds=0.3)  # they wait for each other, and then all go at once
    with ThreadPoolExecutor(40) as threads:
        replays = threads.map(lambda _: sandbox.refund(same, same, "10.00"), range(20))
        others = threads.map(lambda n: sandbox.refund(f"{own}-{n}", own, "10.00"), range(20))
        answers = list(replays)
        assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 19}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert Counter(answer.status_code for answer in others) == {201: 3, 422: 17}
    assert refunds_of(sandbox, same) == [("10.00", "succeeded")]
    assert len(refunds_of(sandbox, own)) == 3


JSON = {"headers": {"Content-Type": "application/json"}}
BAD_REQUESTS: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", "/refunds", {"json": {}}, 400),  # no key
    ("POST", "/refunds", {"json": {}, "headers": {"Idempotency-Key": "k" * 201}}, 400),
    ("POST", "/refunds", {"content": b"[]", **JSON}, 400),
    ("POST", "/refunds", {"content": b"{", **JSON}, 400),
    ("POST", "/faults", {"data": {"on": "refunds"}}, 415),  # what a page elsewhere could send
    ("POST", "/faults", {"json": {"on": "refunds", "kind": "surprise"}}, 422),
    ("DELETE", "/ledger", {}, 404),
    ("GET", "/refunds/by-key/nobody", {}, 404),
    ("POST", "/refunds/re_nothing/cancel", {}, 404),
    ("GET", "/charges/ch_99184", {}, 404),
]


def test_bad_requests_are_refused_with_a_sentence(sandbox: World) -> None:
    amounts = ["10", "1e1", "-10.00", "0.00", "10.000", " 10.00", "10.00\n", "٣.٠٠", 10, 10.0, None, ""]  # noqa: RUF001
    assert {sandbox.refund(unique("key"), "ch_20391", amount).status_code for amount in amounts} == {422}
    for method, url, more, status in BAD_REQUESTS:
        answer = sandbox.http.request(method, url, **more)
        assert (answer.status_code, bool(answer.json()["error"])) == (status, True), (method, url, more)


@pytest.mark.parametrize(
    ("kind", "seen", "done"),
    [
        ("500_after", 500, True),
        ("cut_before", httpx.ReadError, False),
        ("timeout", httpx.ReadTimeout, False),
        ("slow", 201, True),
    ],
)
def test_a_fault_goes_as_it_was_ordered_and_then_is_over(sandbox: World, kind: str, seen: Any, done: bool) -> None:
    paid, key = charge(sandbox), unique("key")
    sandbox.fault("refunds", kind, match=key, seconds=0.3 if kind == "slow" else 30.0)
    assert sandbox.refund(unique("other"), paid, "1.00").status_code == 201  # the match leaves others alone
    body, headers = {"charge": paid, "amount": "10.00", "currency": "EUR"}, {"Idempotency-Key": key}
    timeout = 0.15 if kind == "timeout" else 5.0
    if isinstance(seen, int):
        assert sandbox.http.post("/refunds", json=body, headers=headers, timeout=timeout).status_code == seen
    else:
        with pytest.raises(seen):
            sandbox.http.post("/refunds", json=body, headers=headers, timeout=timeout)
    assert (sandbox.http.get(f"/refunds/by-key/{key}").status_code == 200) is done
    assert sandbox.refund(key, paid, "10.00").status_code == (200 if done else 201)


def test_the_ledger_survives_a_kill_and_pays_for_orders_that_come_into_the_file_later(
    start_sandbox: Callable[..., World], tmp_path: Path
) -> None:
    first, file = start_sandbox(tmp_path), tmp_path / "mine.csv"
    refund = first.refund("kept", "ch_20418", "5.00").json()
    before = first.http.get("/ledger").json()
    first.service.process.send_signal(signal.SIGKILL)
    first.service.process.wait()
    with (tmp_path / "ledger.jsonl").open("ab") as ledger:
        ledger.write(b'{"seq": 99, "kind": "refund", "am')
    file.write_text(orders.BUNDLED.read_text())
    second = start_sandbox(tmp_path, env={"HOLDPOINT_REFUNDS_ORDERS": str(file)})
    assert second.http.get("/ledger").json() == before
    replay = second.refund("kept", "ch_20418", "5.00")
    assert (replay.status_code, replay.json()) == (200, refund)
    assert second.refund("more", "ch_20418", "1441.81").status_code == 422  # 1446.80 were paid
    assert second.refund("a", "ch_7001", "1.00").status_code == 404
    head, line, *_ = orders.BUNDLED.read_text().splitlines()
    file.write_text(f"{head}\n{line.replace('20377', '7001')}\n")
    assert second.refund("b", "ch_7001", "1.00").status_code == 201
    lines = (tmp_path / "ledger.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert second.service.stop()
    assert second.service.process.returncode == 0


def test_a_ledger_that_was_tampered_with_and_a_busy_port_are_one_sentence(
    sandbox: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    port = sandbox.url.rsplit(":")[-1]
    for asked, words in ((port, f"cannot start on 127.0.0.1:{port}"), ("0", "line 1")):
        monkeypatch.setattr(sys, "argv", ["sandbox", "--port", asked, "--data", str(tmp_path)])
        assert __main__.main() == 1
        [line] = capsys.readouterr().err.splitlines()
        assert words in line
        (tmp_path / "ledger.jsonl").write_text("no line of ours\n")


def test_a_person_gets_a_page_on_which_nothing_runs(sandbox: World) -> None:
    sandbox.refund(unique("key"), charge(sandbox), "1.00", reason="<script>alert(1)</script>")
    page = sandbox.http.get("/ledger", headers={"Accept": "text/html"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "<script" not in page.text
