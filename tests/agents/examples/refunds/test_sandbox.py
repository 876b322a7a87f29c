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
from tests.factories import unique
from tests.harness import services

from .conftest import World


def charge(sandbox: World, amount: str = "100.00") -> str:
    """A charge of its own; its id."""
    body = {"amount": amount, "currency": "EUR", "card": "4242"}
    answer = sandbox.http.post("/charges", json=body, headers={"Idempotency-Key": unique("charge")})
    assert answer.status_code == 201
    return str(answer.json()["id"])


def refunds_of(sandbox: World, paid: str) -> list[tuple[str, str]]:
    return sandbox.refunds(paid.removeprefix("ch_"))


def test_a_refund_is_made_and_can_be_read_by_its_id_and_its_key(sandbox: World) -> None:
    answer = sandbox.refund("first key", "ch_20418", "1284.00", reason="returned")
    assert answer.status_code == 201
    refund = answer.json()
    assert (refund["amount"], refund["currency"], refund["card"]) == ("1284.00", "EUR", "4417")
    assert refund["status"] == "succeeded"
    assert sandbox.http.get(f"/refunds/{refund['id']}").json() == refund
    assert sandbox.http.get("/refunds/by-key/first%20key").json() == refund


def test_a_charge_says_what_was_given_back_of_it_and_by_whom(sandbox: World) -> None:
    paid = charge(sandbox)
    assert sandbox.http.get(f"/charges/{paid}").json()["refunded"] == "0.00"
    sandbox.refund(unique("key"), paid, "10.00", reference="run 7")
    taken_back = sandbox.refund(unique("key"), paid, "5.00").json()["id"]
    sandbox.http.post(f"/refunds/{taken_back}/cancel").raise_for_status()
    facts = sandbox.http.get(f"/charges/{paid}").json()
    assert (facts["amount"], facts["currency"], facts["refunded"]) == ("100.00", "EUR", "10.00")
    refunds = [(refund["amount"], refund["status"], refund["reference"]) for refund in facts["refunds"]]
    assert refunds == [("10.00", "succeeded", "run 7"), ("5.00", "cancelled", "")]


def test_every_order_of_the_shop_was_paid_for(sandbox: World) -> None:
    for number in orders.numbers():
        order = orders.find(number)
        assert order is not None
        facts = sandbox.http.get(f"/charges/ch_{number}").json()
        assert (facts["amount"], facts["currency"]) == (f"{order.refundable:.2f}", order.currency)


def test_the_same_key_and_body_give_the_same_answer_and_one_refund(sandbox: World) -> None:
    paid, key = charge(sandbox), unique("key")
    first, second = sandbox.refund(key, paid, "10.00"), sandbox.refund(key, paid, "10.00")
    assert first.json() == second.json()
    assert (first.status_code, second.status_code) == (201, 200)
    assert refunds_of(sandbox, paid) == [("10.00", "succeeded")]


@pytest.mark.parametrize("change", [{"amount": "10.01"}, {"reason": "other"}])
def test_the_same_key_with_another_body_is_refused(sandbox: World, change: dict[str, str]) -> None:
    paid, key = charge(sandbox), unique("key")
    sandbox.refund(key, paid, "10.00")
    assert sandbox.refund(key, paid, **({"amount": "10.00"} | change)).status_code == 409
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


def test_a_refusal_did_nothing_and_is_not_remembered(sandbox: World) -> None:
    paid, key = charge(sandbox), unique("key")
    refused = sandbox.refund(key, paid, "100.01")
    assert refused.status_code == 422
    assert "more than the 100.00 EUR left" in refused.json()["error"]
    assert sandbox.refund(key, paid, "100.00").status_code == 201


@pytest.mark.parametrize(
    "amount",
    ["10", "10.0", "1e1", "-10.00", "0.00", "10.000", " 10.00", "10.00\n", "٣.٠٠", 10, 10.0, None, ""],  # noqa: RUF001
)
def test_an_amount_is_text_with_two_decimals(sandbox: World, amount: Any) -> None:
    assert sandbox.refund(unique("key"), "ch_20391", amount).status_code == 422


def test_a_refund_in_another_currency_is_exchanged_at_a_fixed_rate(sandbox: World) -> None:
    paid = charge(sandbox, "10.00")
    assert sandbox.refund(unique("key"), paid, "9.31", "USD").json()["taken"] == "8.62"
    assert sandbox.http.get(f"/charges/{paid}").json()["refunded"] == "8.62"
    assert "1.38 EUR left" in sandbox.refund(unique("key"), paid, "1.50", "USD").json()["error"]
    assert sandbox.refund(unique("key"), paid, "1.00", "XXX").status_code == 422


def test_a_cancelled_refund_is_given_back_to_the_charge_once(sandbox: World) -> None:
    paid = charge(sandbox, "10.00")
    refund = sandbox.refund(unique("key"), paid, "10.00").json()["id"]
    answers = [sandbox.http.post(f"/refunds/{refund}/cancel") for _ in range(3)]
    assert [answer.json()["status"] for answer in answers] == ["cancelled"] * 3
    assert sandbox.refund(unique("key"), paid, "10.00").status_code == 201
    assert sandbox.refund(unique("key"), paid, "0.01").status_code == 422
    assert refunds_of(sandbox, paid) == [("10.00", "cancelled"), ("10.00", "succeeded")]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"method": "POST", "url": "/refunds", "json": {}}, 400),  # no key
        ({"method": "POST", "url": "/refunds", "json": {}, "headers": {"Idempotency-Key": "k" * 201}}, 400),
        ({"method": "POST", "url": "/refunds", "content": b"[]", "headers": {"Content-Type": "application/json"}}, 400),
        ({"method": "POST", "url": "/refunds", "content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
        ({"method": "POST", "url": "/faults", "data": {"on": "refunds"}}, 415),  # what a page elsewhere could send
        ({"method": "POST", "url": "/faults", "json": {"on": "refunds", "kind": "surprise"}}, 422),
        ({"method": "POST", "url": "/faults", "json": {"on": "refunds", "kind": "500", "times": 0}}, 422),
        ({"method": "DELETE", "url": "/ledger"}, 404),
        ({"method": "GET", "url": "/refunds"}, 404),
        ({"method": "GET", "url": "/refunds/re_nothing"}, 404),
        ({"method": "GET", "url": "/refunds/by-key/nobody"}, 404),
        ({"method": "POST", "url": "/refunds/re_nothing/cancel"}, 404),
        ({"method": "GET", "url": "/charges/ch_99184"}, 404),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(sandbox: World, request_: dict[str, Any], status: int) -> None:
    answer = sandbox.http.request(**request_)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("kind", "seen", "done"),
    [
        ("500", 500, False),
        ("500_after", 500, True),
        ("cut_before", httpx.ReadError, False),
        ("cut_after", httpx.ReadError, True),
        ("timeout", httpx.ReadTimeout, False),
        ("slow", 201, True),
    ],
)
def test_a_fault_goes_as_it_was_ordered_and_then_is_over(sandbox: World, kind: str, seen: Any, done: bool) -> None:
    paid, key = charge(sandbox), unique("key")
    sandbox.fault("refunds", kind, match=key, seconds=0.3)
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


def test_faults_are_counted_listed_matched_by_amount_and_ended(sandbox: World) -> None:
    paid = charge(sandbox)
    sandbox.fault("refunds", "500", times=2, match="7.00")
    assert [sandbox.refund(f"{paid}-{n}", paid, "7.00").status_code for n in range(3)] == [500, 500, 201]
    for on in ("cancel", "reads"):
        sandbox.fault(on, "500", times=9)
    faults = sandbox.http.get("/faults").json()["faults"]
    assert [(fault["on"], fault["times"]) for fault in faults] == [("cancel", 9), ("reads", 9)]
    assert sandbox.http.get(f"/refunds/by-key/{paid}-2").status_code == 500
    sandbox.http.delete("/faults")
    assert sandbox.http.get(f"/refunds/by-key/{paid}-2").status_code == 200


def test_the_ledger_survives_a_kill_and_forgets_a_line_that_was_never_finished(
    start_sandbox: Callable[..., World], tmp_path: Path
) -> None:
    first = start_sandbox(tmp_path)
    refund = first.refund("kept", "ch_20418", "5.00").json()
    before = first.http.get("/ledger").json()
    first.service.process.send_signal(signal.SIGKILL)
    first.service.process.wait()
    with (tmp_path / "ledger.jsonl").open("ab") as ledger:
        ledger.write(b'{"seq": 99, "kind": "refund", "am')
    second = start_sandbox(tmp_path)
    assert second.http.get("/ledger").json() == before
    replay = second.refund("kept", "ch_20418", "5.00")
    assert (replay.status_code, replay.json()) == (200, refund)
    assert second.refund("more", "ch_20418", "1441.81").status_code == 422  # 1446.80 were paid
    lines = (tmp_path / "ledger.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert second.service.stop()
    assert second.service.process.returncode == 0


def test_a_ledger_that_was_tampered_with_and_a_busy_port_are_one_sentence(sandbox: World, tmp_path: Path) -> None:
    port = sandbox.url.rsplit(":")[-1]
    busy = services.run(sys.executable, "-m", "agents.examples.sandbox", "--port", port, "--data", str(tmp_path))
    (tmp_path / "ledger.jsonl").write_text("no line of ours\n")
    broken = services.run(sys.executable, "-m", "agents.examples.sandbox", "--port", "0", "--data", str(tmp_path))
    for ended, words in ((busy, f"cannot start on 127.0.0.1:{port}"), (broken, "line 1")):
        assert (ended.returncode, len(ended.stderr.splitlines())) == (1, 1)
        assert words in ended.stderr


def test_orders_that_come_into_the_file_later_are_paid_for_too(
    start_sandbox: Callable[..., World], tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    head, first, *_ = orders.BUNDLED.read_text().splitlines()
    file.write_text(f"{head}\n{first}\n")
    world = start_sandbox(env={"HOLDPOINT_REFUNDS_ORDERS": str(file)})
    assert world.refund("a", "ch_7001", "1.00").status_code == 404
    file.write_text(f"{head}\n{first.replace('20377', '7001')}\n")
    assert world.refund("b", "ch_7001", "1.00").status_code == 201


def test_a_person_gets_a_page_on_which_nothing_runs(sandbox: World) -> None:
    sandbox.refund(unique("key"), charge(sandbox), "1.00", reason="<script>alert(1)</script>")
    page = sandbox.http.get("/ledger", headers={"Accept": "text/html"})
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "<script" not in page.text
