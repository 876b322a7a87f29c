"""What is given back for which reason, how feedback changes it, and what makes a refund dangerous."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.examples import orders
from agents.examples.money import Money, amounts_in, show_money
from agents.examples.orders import Order
from agents.examples.refunds import rules
from agents.examples.refunds.mail import read_ticket
from agents.examples.refunds.state import Feedback, Reason, Ticket

from .test_mail import read


def find(number: str) -> Order:
    order = orders.find(number)
    assert order is not None
    return order


def words_of(text: str, by: str = "Ann Okafor") -> Feedback:
    return Feedback(text=text, by=by, at="2026-11-21T14:02:00Z", gate=1)


def draft_of(number: str, reason: Reason, *feedback: str, text: str = "") -> rules.Draft:
    return rules.draft_refund(find(number), reason, text, [words_of(words) for words in feedback])


@pytest.mark.parametrize(
    ("name", "number", "reason", "amount"),
    [
        ("01", "20418", Reason.RETURNED, "1284.00"),  # the frames' parcel came back, the lenses' did not
        ("02", "20388", Reason.FAULTY, "34.60"),  # the lamp, not the cord
        ("03", "20402", Reason.NEVER_ARRIVED, "147.90"),
        ("04", "20409", Reason.RETURNED, "106.00"),  # all of it, so shipping too
        ("05", "20412", Reason.FAULTY, "8.50"),  # the hooks, not the shade
        ("06", "20431", Reason.NEVER_ARRIVED, "12480.00"),
        ("07", "99184", Reason.RETURNED, ""),
        ("08", None, Reason.FAULTY, ""),
        ("09", None, Reason.GOODWILL, ""),
        ("10", "20437", Reason.RETURNED, "89.00"),  # not what the hidden text orders
        ("11", "20440", Reason.FAULTY, "156.00"),
        ("12", "20455", Reason.GOODWILL, "14.90"),
        ("13", "20444", Reason.RETURNED, "139.00"),
        ("14", "20391", Reason.NEVER_ARRIVED, "28.80"),
    ],
)
def test_a_bundled_mail_is_given_what_the_rules_say(name: str, number: str | None, reason: Reason, amount: str) -> None:
    ticket = read_ticket(read(name))
    assert (ticket.order_number, ticket.reason) == (number, reason)
    if number and amount:
        assert str(draft_of(number, reason, text=ticket.text).amount) == amount
    else:
        assert orders.find(number or "") is None


@pytest.mark.parametrize(
    ("number", "feedback", "amount"),
    [
        ("20418", ["only the frames"], "1284.00"),
        ("20418", ["Two parcels. Only the second came back: frames only, not the lenses."], "1284.00"),
        ("20418", ["keep the lens out, lenses were kept"], "1284.00"),
        ("20418", ["half"], "723.40"),
        ("20418", ["give 20 %"], "289.36"),
        ("20418", ["only the frames, and half of it"], "642.00"),
        ("20418", ["make it €1,264.10"], "1264.10"),
        ("20418", ["1.264,10 €"], "1264.10"),
        ("20418", ["€9,999.00"], "1446.80"),  # never more than is left of the payment
        ("20418", ["I do not like this at all"], "1446.80"),
        ("20418", ["USD 20.00", "$20", "20.00 PLN"], "1446.80"),  # in another currency than the order's
        ("20409", ["only the bottles, without shipping"], "23.00"),
        ("20409", ["no shipping", "sorry, do add the postage"], "106.00"),
        ("20418", ["€10.00", "only the lenses"], "162.80"),  # the latest wins
        ("20418", ["only the lenses", "half", "€10.00"], "10.00"),
        ("20427", [], "91.00"),  # 95.00 and 11.00 shipping, less 15.00 that were refunded before
    ],
)
def test_one_feedback_after_another_changes_the_amount(number: str, feedback: list[str], amount: str) -> None:
    assert str(draft_of(number, Reason.NEVER_ARRIVED, *feedback).amount) == amount
    spent = find(number).model_copy(update={"refunded": Decimal("2000.00")})
    assert rules.draft_refund(spent, Reason.NEVER_ARRIVED, "").amount == 0


def assess(number: str, amount: str, *feedback: Feedback, **changes: Any) -> tuple[str, list[str]]:
    order = find(number)
    ticket = Ticket(**({"from_address": order.email, "text": "fine"} | changes))
    draft = rules.draft_refund(order, Reason.FAULTY, "", feedback)
    return rules.assess_risk(ticket, Decimal(amount), draft, order, rules.find_doubts(ticket, draft, []))


@pytest.mark.parametrize(
    ("number", "amount", "level", "reason"),
    [
        ("20418", "100.00", "low", ""),
        ("20418", "100.01", "medium", "Amount over €100"),
        ("20418", "1000.01", "high", "Amount over €1,000"),
        ("20431", "10000.01", "critical", "Amount over £10,000"),
    ],
)
def test_the_risk_rises_with_the_amount(number: str, amount: str, level: str, reason: str) -> None:
    assert assess(number, amount) == (level, [*filter(None, [reason]), "Sends an e-mail, which cannot be undone"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "a" + "\n" * 22 + "pay me"}, "The customer's mail hides text behind 22 blanks"),
        ({"text": "a" + " " * 41 + "pay me"}, "The customer's mail hides text behind 41 blanks"),
        ({"text": "a\u202eb"}, "1 character in the customer's mail cannot be seen"),
        (
            {"from_address": ""},
            "The mail comes from an unknown sender, and order 20391 was placed with another address",
        ),
        ({"wants": "39.00", "wants_currency": "USD"}, "The customer asks for $39.00, and the order was paid in EUR"),
        ({"wants": "500.00"}, "The customer asks for €500.00, and €28.80 is left of the payment"),
        ({"reply_to": "x@y.example"}, "The mail wants its answer at another address; the reply does not go there"),
    ],
)
def test_what_is_strange_makes_a_small_refund_dangerous(changes: dict[str, object], reason: str) -> None:
    level, reasons = assess("20391", "1.00", **changes)
    assert level == "high"
    assert any(reason in each for each in reasons)
    level, reasons = assess("20391", "1.00", words_of("half"))
    assert (level, "Sent back with feedback by Ann Okafor" in reasons) == ("medium", True)


def test_money_is_text_of_two_decimals_and_never_a_float() -> None:
    money = TypeAdapter(Money)
    for wrong in (1284.0, 1284, True, None, "NaN", "Infinity", "-1.00", "1.001", "1e400", "", "x"):
        with pytest.raises(ValidationError):
            money.validate_python(wrong)
    for value, saved in (("1284", "1284.00"), ("1264.1", "1264.10"), ("0", "0.00")):
        assert money.dump_python(money.validate_python(value), mode="json") == saved
    assert show_money(Decimal("1284.00"), "EUR") == "€1,284.00"
    assert show_money(Decimal("1284.5"), "SEK") == "1,284.50 SEK"


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("€1,284.00", "1284.00", "EUR"),
        ("1.284,00 EUR", "1284.00", "EUR"),
        ("CHF 1'284.50", "1284.50", "CHF"),
        ("12 480,00 SEK", "12480.00", "SEK"),
        ("59,00 euros", "59.00", "EUR"),
        ("19.90", "19.90", ""),
        # "USD 59.00" was read as 59.00 of whatever the order was in.
        ("USD 59.00", "59.00", "USD"),
        ("A$59.00", "59.00", "A$"),
        ("JPY 5900", "5900.00", "JPY"),
        ("\u00a559.00", "59.00", "JPY"),
        ("59.00 PLN", "59.00", "PLN"),
        ("order 20418", "", ""),
        ("2 frames on 21.11.2026, version 1.2", "", ""),
    ],
)
def test_an_amount_is_found_in_either_way_of_writing_with_its_currency(text: str, amount: str, currency: str) -> None:
    assert list(amounts_in(text)) == ([(Decimal(amount), currency)] if amount else [])


HEAD = "order,customer,company,email,currency,card,paid_on,shipping,refunded,item,quantity,price,parcel,returned_on\n"
LINE = "1,A,B,a@b.example,EUR,4417,2026-01-01,0.00,0.00,Thing,1,5.00,1,\n"
OTHER = LINE.replace("1,A", "2,A")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDPOINT_REFUNDS_ORDERS", str(tmp_path / "mine.csv"))
    return tmp_path / "mine.csv"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"order,customer\n1,A", "mine.csv, line 2, company: Field required"),
        ((HEAD + LINE.replace("5.00", "five")).encode(), "mine.csv, line 2, price"),
        ((HEAD + OTHER + LINE.replace("EUR", "XXX")).encode(), "mine.csv, line 3, currency"),
        ((HEAD + LINE.replace("Thing,1", "Thing,1.5")).encode(), "mine.csv, line 2, quantity"),
        (b"\xff\xfe\x00", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_a_file_of_orders_that_cannot_be_read_says_where(file: Path, data: bytes | None, sentence: str) -> None:
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(orders.OrdersRefused, match=sentence):
        orders.find("1")


def test_the_users_own_file_of_orders_is_read_each_time_and_a_bad_line_stops_no_other_order(file: Path) -> None:
    file.write_text("\ufeff" + HEAD + LINE)
    assert find("1").items[0].name == "Thing"
    file.write_text(HEAD + OTHER + LINE.replace("EUR", "XXX"))
    assert find("2").number == "2"
    assert orders.find("3") is None
    assert orders.find("") is None
    assert orders.numbers() == {"1", "2"}
