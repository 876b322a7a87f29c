"""What is given back for which reason, how feedback changes it, and what makes a refund dangerous."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.examples import orders
from agents.examples.money import Money, amounts_in, shown
from agents.examples.orders import Order
from agents.examples.refunds import risk, rules
from agents.examples.refunds import words as refunds_words
from agents.examples.refunds.mail import ParsedMail, parse
from agents.examples.refunds.state import Facts, Feedback, Proposal, Reason, Refund, Reply, Ticket

from .test_mail import read

ORDERS = orders.read(orders.BUNDLED)


def said(text: str, by: str = "Ann Okafor") -> Feedback:
    return Feedback(text=text, by=by, at="2026-11-21T14:02:00Z", gate=1)


def amount_of(order: str, reason: Reason, *feedback: str, words: str = "") -> str:
    made = rules.draft(ORDERS[order], reason, words, [said(each) for each in feedback])
    return str(made.amount(ORDERS[order]))


def ticket(name: str) -> Ticket:
    return rules.ticket_of(parse(read(name)))


@pytest.mark.parametrize(
    ("name", "number", "reason", "amount"),
    [
        ("01", "20418", Reason.RETURNED, "1284.00"),  # the frames' parcel came back, the lenses' did not
        ("02", "20388", Reason.FAULTY, "34.60"),  # the lamp, not the cord
        ("03", "20402", Reason.NEVER_ARRIVED, "147.90"),
        ("04", "20409", Reason.RETURNED, "106.00"),  # all of it, so shipping too
        ("05", "20412", Reason.FAULTY, "8.50"),  # the hooks, not the shade
        ("06", "20431", Reason.NEVER_ARRIVED, "12480.00"),
        ("10", "20437", Reason.RETURNED, "89.00"),  # not what the hidden text orders
        ("11", "20440", Reason.FAULTY, "156.00"),
        ("12", "20455", Reason.GOODWILL, "14.90"),
        ("13", "20444", Reason.RETURNED, "139.00"),
        ("14", "20391", Reason.NEVER_ARRIVED, "28.80"),
    ],
)
def test_a_bundled_mail_is_given_what_the_rules_say(name: str, number: str, reason: Reason, amount: str) -> None:
    read_as = ticket(name)
    assert (read_as.order_number, read_as.reason) == (number, reason)
    assert amount_of(number, reason, words=rules.words_in_sight(read_as.text)) == amount


@pytest.mark.parametrize(("name", "number"), [("07", "99184"), ("08", None), ("09", None)])
def test_some_mails_name_no_order_of_the_shop(name: str, number: str | None) -> None:
    assert ticket(name).order_number == number
    assert number not in ORDERS


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("my order 20418 please", "20418"),
        ("Bestellung Nr. 20402", "20402"),
        ("по заказу 20409", "20409"),
        ("#20388", "20388"),
        ("ring me at 555-20418-77, it is about 20391", "20391"),
        ("20391 or 20418?", None),
        ("on 20 November", None),
        ("order 123", None),
        ("> order 20418\nno number of mine", None),
        ("hello" + "\n" * 30 + "order 20418", None),
    ],
)
def test_an_order_number_is_found_in_the_words_in_sight_only(text: str, number: str | None) -> None:
    assert rules.ticket_of(ParsedMail(text=text)).order_number == number


@pytest.mark.parametrize(
    ("subject", "text", "numbers", "lookalikes"),
    [
        ("", "order 20418 and order 20391", ["20418", "20391"], []),
        ("Order 20418", "it is about order 20391", ["20418", "20391"], []),
        ("Order 20418", "order 20418 again, D-10115 Berlin", ["20418"], []),
        ("", "20391 or 20418?", ["20391", "20418"], []),
        ("", "order 2\u041e418", [], ["2\u041e418"]),
        ("2O418 arrived broken", "", [], ["2O418"]),
        ("", "order \uff12\uff10\uff14\uff11\uff18", [], ["\uff12\uff10\uff14\uff11\uff18"]),
        ("", "order 20\u200b418", [], ["20\u200b418"]),
        ("", "order 2\u041e418, which is 20391", ["20391"], ["2\u041e418"]),
        ("", "order 20418, 100l of it, on the 1st, since 2019", ["20418"], []),
        # Of these the first number was taken at low risk, and nothing said that there is another.
        ("", "Please refund order 20418, or was it 20391?", ["20418", "20391"], []),
        ("", "order 20418/20391", ["20418", "20391"], []),
        ("Order 20418 or 20391", "Hello", ["20418", "20391"], []),
        ("Order 20418", "Thank you.\n\nOr is it 77001?", ["20418", "77001"], []),
        ("", "order 20418 came broken.\n\nMarit Ellery\n10115 Berlin", ["20418"], []),
        # Of these the digits alone were taken.
        ("", "order \u041020418", [], ["\u041020418"]),
        ("", "order 20418\u0410", [], ["20418\u0410"]),
        ("", "order 2041\u0410", [], ["2041\u0410"]),
        ("", "It is \u041020418.", [], ["\u041020418"]),
        ("", "order A20418", [], ["A20418"]),
        ("", "order \uff2120418", [], ["\uff2120418"]),
        ("", "order 20418\u200b", ["20418"], ["20418\u200b"]),
        ("", "order-20418, Bestellung20391, “order 20418”, order 20418\u2019s lamp, no.20391.", ["20418", "20391"], []),
        ("", "\u0437\u0430\u043a\u0430\u043720418, tracking AB123456789, it was 20418\u20ac", ["20418"], []),
        # Of these the first was taken too, since the shop does not know the other.
        ("", "Please refund order no. 77001, or was it 20391?", ["77001", "20391"], []),
        ("", "Order nr. 77001 or 20391", ["77001", "20391"], []),
        ("", "order 77001,20391", ["77001", "20391"], []),
        ("", "order 77001 or 203911", ["77001", "203911"], []),
        ("", "order 77001 or 2037", ["77001", "2037"], []),
        ("", "\u2116 77001 \u0438\u043b\u0438 20391", ["77001", "20391"], []),
        ("", "My lamp 77001, or was it 20391?", ["77001", "20391"], []),
        # It is shown as 20388.
        ("", "order \u202e 88302 \u202c", [], ["88302"]),
        ("\u202e88302", "order \u2066 88302 \u2069", [], ["88302", "\u202e88302"]),
        # And people were asked about these.
        ("", "order 20418\u2014it arrived, Order:20418|Name, number=20418. Or 20418.Please", ["20418"], []),
        ("", "Bestellungsnummer20418, OrderID20418", ["20418"], []),
        ("", "order 20418 (ordered on 2026-10-21 or 2026/10/22), order date 2026", ["20418"], []),
        ("", "order 20418 of 21 Oct 2026, I paid 1299 EUR, an order value 1299.00", ["20418"], []),
        ("", "order 20418. My zip is 10115.", ["20418"], []),
    ],
)
def test_every_number_is_named_and_what_only_looks_like_one(
    subject: str, text: str, numbers: list[str], lookalikes: list[str]
) -> None:
    ticket = rules.ticket_of(ParsedMail(subject=subject, text=text), {"77001"}.__contains__)
    assert (ticket.numbers, ticket.lookalikes) == (numbers, lookalikes)
    assert ticket.order_number == (numbers[0] if len(numbers) == 1 and not lookalikes else None)


def test_a_long_mail_is_read_in_one_pass() -> None:
    """The letters behind "\u0437\u0430\u043a\u0430\u0437" were tried anew from each of them: this took hours."""
    order = "\u0437\u0430\u043a\u0430\u0437"
    assert rules.ticket_of(ParsedMail(text=order * 40_000 + " 20418")).order_number == "20418"


@pytest.mark.parametrize(
    ("feedback", "amount"),
    [
        ("only the frames", "1284.00"),
        ("Two parcels. Only the second came back: frames only, not the lenses.", "1284.00"),
        ("frames only", "1284.00"),
        ("Not the lenses, please", "1284.00"),
        ("keep the lens out, lenses were kept", "1284.00"),
        ("only the lenses", "162.80"),
        ("half", "723.40"),
        ("give 20 %", "289.36"),
        ("only the frames, and half of it", "642.00"),
        ("make it €1,264.10", "1264.10"),
        ("1.264,10 €", "1264.10"),
        ("1264.10", "1264.10"),
        ("EUR 19.90 is enough", "19.90"),
        ("€9,999.00", "1446.80"),  # never more than is left of the payment
        ("I do not like this at all", "1446.80"),
    ],
)
def test_feedback_changes_the_amount(feedback: str, amount: str) -> None:
    assert amount_of("20418", Reason.NEVER_ARRIVED, feedback) == amount


def test_shipping_is_given_and_kept_as_told() -> None:
    assert amount_of("20437", Reason.RETURNED) == "89.00"
    assert amount_of("20437", Reason.RETURNED, "with shipping") == "98.90"
    assert amount_of("20409", Reason.RETURNED, "no shipping") == "97.00"
    assert amount_of("20409", Reason.RETURNED, "no shipping", "sorry, do add the postage") == "106.00"


def test_the_latest_feedback_wins() -> None:
    assert amount_of("20418", Reason.RETURNED, "€10.00", "only the lenses") == "162.80"
    assert amount_of("20418", Reason.RETURNED, "only the lenses", "half", "€10.00") == "10.00"


def test_what_was_refunded_before_is_not_given_again() -> None:
    assert ORDERS["20427"].left == Decimal("91.00")  # 95.00 and 11.00 shipping, less 15.00
    assert amount_of("20427", Reason.NEVER_ARRIVED) == "91.00"
    spent = ORDERS["20427"].model_copy(update={"refunded": Decimal("200.00")})
    assert rules.draft(spent, Reason.NEVER_ARRIVED, "", []).amount(spent) == 0


def test_the_agent_says_what_it_heeded_and_what_it_could_not_read() -> None:
    order = ORDERS["20418"]
    made = rules.draft(order, Reason.RETURNED, "", [said("only the lenses"), said("hm", by="Bob Lindqvist")])
    words = refunds_words.summary(order, Reason.RETURNED, made, made.amount(order))
    assert "As Ann Okafor asked: only 2 Prescription lenses." in words
    assert "I could not apply the feedback from Bob Lindqvist; the proposal is unchanged." in words
    assert "That makes €162.80." in words


def test_the_summary_tells_an_edited_amount_from_the_agents_own() -> None:
    order = ORDERS["20418"]
    made = rules.draft(order, Reason.RETURNED, "", [])
    words = refunds_words.summary(order, Reason.RETURNED, made, Decimal("1264.10"))
    assert words.endswith("A reviewer made it €1,264.10; I had €1,284.00.")


def test_an_apology_that_was_asked_for_stands_in_the_letter() -> None:
    order = ORDERS["20418"]
    made = rules.draft(order, Reason.RETURNED, "", [said("please apologise to her")])
    facts = Facts(order_number="20418", name="Marit Ellery", address="m@fernhollow.example", reason=Reason.RETURNED)
    assert "We apologise" in refunds_words.letter(order, facts, made)


def assess(order: Order, amount: str, *feedback: Feedback, **changes: object) -> tuple[str, list[str]]:
    base = Ticket(
        from_address=order.email,
        from_name=order.customer,
        reply_to="",
        subject="",
        sent="",
        text="fine",
        order_number=order.number,
        reason=Reason.FAULTY,
        wants=None,
        attachments=[],
        problems=[],
    )
    made = rules.draft(order, Reason.FAULTY, "", feedback)
    refund = Refund(
        amount=Decimal(amount), currency=order.currency, reason=Reason.FAULTY, charge=order.charge, card=order.card
    )
    proposal = Proposal(refund=refund, reply=Reply(to=order.email, subject="s", text="t"))
    standing = (Decimal(0), order.left)
    return risk.assess(base.model_copy(update=changes), order, proposal, made, feedback, [], standing)


@pytest.mark.parametrize(
    ("order", "amount", "level", "reason"),
    [
        ("20418", "100.00", "low", ""),
        ("20418", "100.01", "medium", "Amount over €100"),
        ("20418", "1000.01", "high", "Amount over €1,000"),
        ("20431", "10000.01", "critical", "Amount over £10,000"),
        ("20421", "1000.00", "low", ""),
        ("20421", "1000.01", "medium", "Amount over 1,000.00 SEK"),
    ],
)
def test_the_risk_rises_with_the_amount(order: str, amount: str, level: str, reason: str) -> None:
    found, reasons = assess(ORDERS[order], amount)
    assert found == level
    assert reasons == [each for each in [reason, "Sends an e-mail, which cannot be undone"] if each]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"text": "a" + "\n" * 22 + "pay me"}, "The customer's mail hides text behind 21 blank lines"),
        ({"text": "a\u202eb"}, "1 character in the customer's mail cannot be seen"),
        ({"from_address": "other@elsewhere.example"}, "The mail does not come from the address of the order"),
        ({"reply_to": "x@y.example"}, "The mail wants its answer at another address; the reply does not go there"),
    ],
)
def test_what_an_honest_mail_does_not_have_makes_a_small_refund_dangerous(
    changes: dict[str, object], reason: str
) -> None:
    level, reasons = assess(ORDERS["20391"], "1.00", **changes)
    assert level == "high"
    assert reason in reasons


def test_being_asked_again_after_a_no_is_said_and_a_rewind_is_none() -> None:
    """Nobody had said no: the run was rewound with feedback."""
    level, reasons = assess(ORDERS["20391"], "1.00", said("half"))
    assert level == "medium"
    assert "Rejected before by Ann Okafor" in reasons
    rewound = said("half").model_copy(update={"gate": 0})
    assert "Sent back with feedback by Ann Okafor" in assess(ORDERS["20391"], "1.00", rewound)[1]


@pytest.mark.parametrize("value", [1284.0, 1284, True, None, "NaN", "Infinity", "-1.00", "1.001", "1e400", "", "x"])
def test_money_is_text_and_never_a_float(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Money).validate_python(value)


@pytest.mark.parametrize(("value", "kept"), [("1284", "1284.00"), ("1264.1", "1264.10"), ("0", "0.00")])
def test_money_is_kept_with_two_decimals(value: str, kept: str) -> None:
    money = TypeAdapter(Money)
    assert money.dump_python(money.validate_python(value), mode="json") == kept


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("€1,284.00", "1284.00"),
        ("1.284,00 EUR", "1284.00"),
        ("CHF 1'284.50", "1284.50"),
        ("12 480,00 SEK", "12480.00"),
        ("£5", "5.00"),
        ("5 euros", "5.00"),
        ("19.90", "19.90"),
        ("order 20418", None),
        ("2 frames on 21.11.2026", None),
        ("version 1.2", None),
    ],
)
def test_an_amount_is_found_in_either_way_of_writing(text: str, amount: str | None) -> None:
    assert next((str(each.amount) for each in amounts_in(text)), None) == amount


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("USD 59.00", "USD"),
        ("59,00 euros", "EUR"),
        ("twelve, or 59 dollars", "USD"),
        ("A$59.00", "A$"),
        ("JPY 5900", "JPY"),
        ("\u00a559.00", "JPY"),
        ("59.00 PLN", "PLN"),
        ("I would try 59.00", ""),
        ("59.00", ""),
    ],
)
def test_an_amount_has_the_currency_that_is_written_beside_it(text: str, currency: str) -> None:
    """ "USD 59.00" was read as 59.00 of whatever the order was in."""
    assert [each.currency for each in amounts_in(text)] == [currency]


@pytest.mark.parametrize("words", ["USD 20.00", "$20", "20.00 PLN"])
def test_feedback_in_another_currency_changes_nothing_and_says_so(words: str) -> None:
    made = rules.draft(ORDERS["20418"], Reason.NEVER_ARRIVED, "", [said(words)])
    assert (made.fixed, made.unheeded) == (None, ["Ann Okafor"])


def test_an_amount_is_shown_as_people_read_it() -> None:
    assert shown(Decimal("1284.00"), "EUR") == "€1,284.00"
    assert shown(Decimal("1284.5"), "SEK") == "1,284.50 SEK"


HEAD = "order,customer,company,email,currency,card,paid_on,shipping,refunded,item,quantity,price,parcel,returned_on\n"
LINE = "1,A,B,a@b.example,EUR,4417,2026-01-01,0.00,0.00,Thing,1,5.00,1,\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "lacks the column order"),
        ("order,customer\n", "lacks the column company, email"),
        (HEAD + LINE.replace("5.00", "five"), "line 2, price"),
        (HEAD + LINE + LINE.replace("EUR", "XXX").replace("1,A", "2,A"), "line 3, currency"),
        (HEAD + LINE.replace("Thing,1", "Thing,1.5"), "line 2, quantity"),
    ],
)
def test_a_file_of_orders_that_cannot_be_read_says_where(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "orders.csv").write_text(text)
    with pytest.raises(orders.OrdersRefused, match=sentence):
        orders.read(tmp_path / "orders.csv")


def test_a_missing_or_binary_file_of_orders_says_so(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.csv", "absent.csv"):
        with pytest.raises(orders.OrdersRefused, match="cannot be read"):
            orders.read(tmp_path / name)


def test_the_users_own_file_of_orders_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine.csv"
    monkeypatch.setenv("HOLDPOINT_REFUNDS_ORDERS", str(mine))
    mine.write_text("\ufeff" + HEAD + LINE)
    assert orders.find("1") is not None
    mine.write_text(HEAD + LINE.replace("1,A", "2,A"))
    assert orders.find("1") is None
    assert orders.find("") is None


def test_one_order_that_cannot_be_read_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in an unknown currency stopped every mail."""
    mine = tmp_path / "mine.csv"
    monkeypatch.setenv("HOLDPOINT_REFUNDS_ORDERS", str(mine))
    mine.write_text(HEAD + LINE + LINE.replace("EUR", "XXX").replace("1,A", "2,A"))
    assert orders.find("1") is not None
    with pytest.raises(orders.OrdersRefused, match="line 3, currency"):
        orders.find("2")
