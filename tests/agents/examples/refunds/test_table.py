"""docs/refunds.md, row by row: a mail for each, and what the agent really does with it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest
from django.core import mail as outbox

from agents.examples import orders as refunds_orders
from agents.runs.start import start_run
from approvals.cards.card import Card
from approvals.errors import Invalid
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Run
from tests.factories import make_team
from tests.factories.driven_runs import advance_to_rest, answer, decide, open_gate
from tests.harness.session import ROOT

from . import test_mail, test_rules
from .conftest import World
from .refund_runs import edit

TABLE = ROOT / "docs" / "refunds.md"
AT_RISK = "high"
Row = Callable[["Shop"], object]
ROWS: dict[str, Row] = {}
BY_RULE = {  # of which a test of the rule has what is read, or found
    "none of these reasons": test_rules.test_a_bundled_mail_is_given_what_the_rules_say,
    "anything else in the number's word": test_mail.test_every_number_is_named_and_what_only_looks_like_one,
    "a sender who imitates the customer's address": test_rules.test_what_is_strange_makes_a_small_refund_dangerous,
    "another currency": test_rules.test_what_is_strange_makes_a_small_refund_dangerous,
    "more asked for than is left": test_rules.test_what_is_strange_makes_a_small_refund_dangerous,
    "plain text and HTML that agree": test_mail.test_forms_of_a_mail_that_name_other_amounts_or_orders_decide_nothing,
    "an odd charset": test_mail.test_words_survive_the_charsets_that_programs_know_and_others_decide_nothing,
}
HEAD = refunds_orders.BUNDLED.read_text().splitlines()[0] + "\n"
NUMBERS = itertools.count(30001)  # the provider remembers every order's payment


class Shop:
    """The shop as a row's test sees it: orders of its own, mails written here, one team."""

    def __init__(self, world: World, orders: Path) -> None:
        self.world, self.team = world, make_team()
        self.orders = orders
        orders.write_text(HEAD)

    def order(self, *items: tuple[str, int, str, str], currency: str = "EUR", shipping: str = "5.00") -> str:
        """A new order's number. Items: name, quantity, price, the day on which it came back or nothing."""
        number = str(next(NUMBERS))
        head = f"{number},Marit Ellery,,marit@fernhollow.example,{currency},4417,2026-11-02,{shipping},0.00"
        lines = [f"{head},{name},{count},{price},1,{back}" for name, count, price, back in items or [LAMP]]
        with self.orders.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return number

    def mail(self, text: str, *, sender: str = "Marit Ellery <marit@fernhollow.example>", **more: str) -> Run:
        """A run over a mail, as far as it goes by itself."""
        message = EmailMessage()
        message["To"], message["Subject"] = "service@shop.example", more.get("subject", "A refund, please")
        if more.get("reply_to"):
            message["Reply-To"] = more["reply_to"]
        message.set_content(text, subtype=more.get("kind", "plain"))
        if more.get("html"):
            message.add_alternative(more["html"], subtype="html")
        raw = f"From: {sender}\n".encode() + message.as_bytes()
        input = {"mail": {"name": "mail.eml", "raw": raw.decode("iso-8859-1")}}
        return advance_to_rest(start_run("refunds", input, by=actors.SYSTEM, team=self.team))


LAMP = ("Paper lamp", 1, "40.00", "")
CORD = ("Linen cord", 2, "10.00", "")


@pytest.fixture(scope="module")
def shared_sandbox(start_sandbox: Callable[..., World], tmp_path_factory: pytest.TempPathFactory) -> World:
    """A provider that knows the orders of these tests."""
    orders = tmp_path_factory.mktemp("shop") / "orders.csv"
    orders.write_text(HEAD)
    world = start_sandbox(env={"HOLDPOINT_REFUNDS_ORDERS": str(orders)})
    world.orders = orders  # type: ignore[attr-defined]
    return world


@pytest.fixture
def shop(world: World, monkeypatch: pytest.MonkeyPatch) -> Shop:
    orders: Path = world.orders  # type: ignore[attr-defined]
    monkeypatch.setenv("HOLDPOINT_REFUNDS_ORDERS", str(orders))
    return Shop(world, orders)


def row(first: str) -> Callable[[Row], Row]:
    """The test of the table's row whose first cell says this."""

    def keep(test: Row) -> Row:
        ROWS[first] = test
        return test

    return keep


def test_every_row_of_the_table_has_its_mail() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    assert sorted(line.split("|")[1].strip() for line in lines[1:]) == sorted([*ROWS, *BY_RULE])


def card(run: Run, step: str) -> Card:
    gate = open_gate(run)
    assert (gate.step, gate.kind) == (step, Gate.Kind.REVIEW)
    return gate.standing().card


def proposes(run: Run, amount: str) -> Card:
    """The run asks whether to pay this, and has paid nothing."""
    asked = card(run, "review")
    assert asked.actions[0].arguments["amount"] == amount
    return asked


def asks_for_facts(run: Run, title: str, risk: str = "medium") -> Card:
    """The run asks for the order's number, and takes no yes for an answer."""
    asked = card(run, "ask_facts")
    assert (asked.title, asked.risk) == (f"Type the missing facts: {title}", risk)
    with pytest.raises(Invalid) as refused:
        decide(run)
    assert [error["pointer"] for error in refused.value.errors] == ["/order_number"]
    return asked


def type_number(run: Run, number: str) -> Run:
    edit(run, "facts", order_number=number)
    return advance_to_rest(run)


def doubts(run: Run, *reasons: str, yes: str) -> None:
    """The run asks whether the refund is right, for these reasons. No pays nothing; yes proposes `yes`."""
    asked = card(run, "ask_doubts")
    assert (asked.reasons, asked.risk, asked.actions) == (reasons, AT_RISK, ())
    answer(run, "pay")
    proposed = proposes(advance_to_rest(run), yes)
    assert set(reasons) <= set(proposed.reasons)
    assert proposed.risk == AT_RISK


@row("goods that came back")
def came_back(shop: Shop) -> None:
    back = ("Paper lamp", 1, "40.00", "2026-11-19")
    proposes(shop.mail(f"I returned the lamp of order {shop.order(back, CORD)}."), "40.00")
    proposes(shop.mail(f"I returned the lamp of order {shop.order(back)}."), "45.00")


@row('goods "sent back" that did not come')
def not_back(shop: Shop) -> None:
    asked = proposes(shop.mail(f"I sent back order {shop.order(LAMP, CORD)}."), "60.00")
    assert ("No parcel of this order has come back yet" in asked.reasons, asked.risk) == (True, AT_RISK)


row("a parcel that never arrived")(lambda shop: proposes(shop.mail(f"Order {shop.order()} never arrived."), "45.00"))


@row("faulty goods")
def faulty(shop: Shop) -> None:
    asked = proposes(shop.mail(f"Of order {shop.order(LAMP, CORD)} the lamp is broken. The cord is fine."), "40.00")
    assert asked.summary.startswith("The customer reports as faulty: Paper lamp. Refund in full; no return needed.")
    proposes(shop.mail(f"Order {shop.order(LAMP, CORD)} is faulty."), "60.00")


row("no order number")(lambda shop: asks_for_facts(shop.mail("The lamp is broken."), "no order number found"))


@row("an unknown order number")
def unknown_number(shop: Shop) -> None:
    run = shop.mail("Order 99999 is broken.")
    asks_for_facts(run, "order 99999 is not known")
    asks_for_facts(type_number(run, "88888"), "order 88888 is not known")
    proposes(type_number(run, shop.order()), "40.00")


@row("two order numbers")
def two_numbers(shop: Shop) -> None:
    first, other = shop.order(), shop.order()
    for subject, text, numbers in [
        ("Refund", f"Order {first} and order {other} never arrived.", [first, other]),
        (f"Order {other} never arrived", f"It is about order {first}.", [other, first]),
        ("Refund", f"Order {first} is broken.\n\nWas it {other}?", [first, other]),
    ]:
        asks_for_facts(shop.mail(text, subject=subject), f"which order: {' or '.join(numbers)}")


@row("letters that look like digits, or turned digits")
def lookalike(shop: Shop) -> None:
    number = shop.order()
    disguised = number.replace("0", "\u041e", 1)
    run = shop.mail(f"Order {disguised} never arrived, which is {number}.")
    asks_for_facts(run, f"the order number “{disguised}” only looks like one")
    turned = f"Order \u202e {number[::-1]} \u202c never arrived."
    asks_for_facts(shop.mail(turned), f"the order number “{number[::-1]}” only looks like one")


@row("the same mail again")
def same_mail(shop: Shop) -> None:
    text = f"Order {shop.order()} never arrived."
    first = shop.mail(text)
    doubts(shop.mail(text), f"The same mail came before and is handled in R-{first.pk}", yes="45.00")
    text = f"Order {shop.order()} never arrived, I say."
    stopped = shop.mail(text)
    decide(stopped, "reject", comment="A mistake of mine.")
    assert advance_to_rest(stopped).status == "cancelled"
    proposes(shop.mail(text), "45.00")


@row("an order that is not the sender's")
def from_another(shop: Shop) -> None:
    number, sender = shop.order(), "m.ellery@quickmail.example"
    run = shop.mail(f"Order {number} never arrived.", sender=f"Marit Ellery <{sender}>")
    doubts(run, f"The mail comes from {sender}, and order {number} was placed with another address", yes="45.00")


@row("less left than the rules give")
def less_left(shop: Shop) -> None:
    number = shop.order()
    shop.world.refund(f"bank-{number}", f"ch_{number}", "34.60").raise_for_status()
    run = shop.mail(f"Order {number} never arrived.")
    doubts(run, "The rules give €45.00, and €10.40 is left of the payment", yes="10.40")
    assert "€34.60 is already refunded on this charge by others" in card(run, "review").reasons


@row("a refund paid elsewhere meanwhile")
def paid_elsewhere(shop: Shop) -> None:
    number = shop.order()
    run = shop.mail(f"Order {number} never arrived.")
    [offered] = proposes(run, "45.00").preconditions
    assert (offered.label, offered.value) == ("Nothing else has been refunded on this charge: {value}", "€0.00")
    decide(run, preconditions=[offered.id])
    shop.world.refund(f"bank-{number}", f"ch_{number}", "34.60").raise_for_status()
    asked = proposes(advance_to_rest(run), "45.00")
    assert "€34.60 is already refunded on this charge by others" in asked.reasons
    assert "€45.00 cannot be paid: €10.40 is left of the payment" in asked.reasons
    assert asked.risk == AT_RISK
    [offered] = asked.preconditions
    assert offered.label == "{value} is already refunded on this charge by others, and this has not changed"
    with pytest.raises(Invalid) as refused:
        decide(run)
    assert [error["pointer"] for error in refused.value.errors] == ["/amount"]


@row("HTML without plain text")
def may_be_hidden(shop: Shop) -> None:
    number = shop.order()
    html = f"<p>Order {number} is not so nice.</p><p style='color:#fff'>It never arrived.</p>"
    run = shop.mail(html, kind="html")
    asked = asks_for_facts(run, "no order number found", AT_RISK)
    assert [quote.pointer for quote in asked.quotes] == ["/ticket/text", "/ticket/hidden"]
    look = "its formatting may keep words out of sight; check them against the original"
    assert f"The mail was hard to read: {look}" in asked.reasons
    asked = proposes(type_number(run, number), "4.00")
    assert asked.risk == AT_RISK
    words = f"Order {number} is not so nice. It never arrived."
    assert f"Words of the customer's mail may be out of sight: “{words}”" in asked.reasons


@row("plain text and HTML that differ in amounts or orders")
def other_forms(shop: Shop) -> None:
    text = f"Order {shop.order()} is not so nice, please give me 80.00 EUR."
    run = shop.mail(text, html=f"<p>{text.replace('80', '8')}</p>")
    asked = asks_for_facts(run, "no order number found", AT_RISK)
    assert "The mail was hard to read: its plain text and its HTML name different amounts or orders" in asked.reasons


@row("words far below, or invisible characters")
def far_below(shop: Shop) -> None:
    text = f"Order {shop.order()} is not as nice as I thought." + "\n" * 30 + "It never arrived."
    assert proposes(shop.mail(text), "4.00").risk == AT_RISK
    assert proposes(shop.mail(f"Order {shop.order()} is not \u202eso\u202c nice."), "4.00").risk == AT_RISK


@row("an answer wanted elsewhere")
def other_answer(shop: Shop) -> None:
    asked = proposes(shop.mail(f"Order {shop.order()} never arrived.", reply_to="x@elsewhere.example"), "45.00")
    assert (asked.actions[1].arguments["to"], asked.risk) == ("marit@fernhollow.example", AT_RISK)


@row("an order in an unknown currency")
def unknown_currency(shop: Shop) -> None:
    good, bad = shop.order(), shop.order(currency="XXX")
    gate = open_gate(shop.mail(f"Order {bad} never arrived."))
    assert (gate.kind, gate.step) == (Gate.Kind.RECOVERY, "find_order")
    assert re.search(r"orders\.csv, line 3, currency", gate.asked.summary)
    proposes(shop.mail(f"Order {good} never arrived."), "45.00")


@pytest.mark.parametrize("first_cell", ROWS)
def test_the_agent_does_what_the_row_says(first_cell: str, shop: Shop) -> None:
    ROWS[first_cell](shop)
    assert outbox.outbox == []


def test_no_leads_to_a_reply_that_refuses_and_pays_nothing(shop: Shop) -> None:
    number = shop.order()
    run = shop.mail(f"Order {number} never arrived.", sender="Somebody <s@quickmail.example>")
    answer(run, "refuse")
    asked = proposes(advance_to_rest(run), "0.00")
    assert asked.title == "Reply to Marit Ellery, no refund"
    decide(run)
    assert advance_to_rest(run).status == "completed"
    [sent] = outbox.outbox
    assert (sent.to, sent.subject) == (["s@quickmail.example"], f"About your request for order {number}")
    assert "We cannot pay a refund" in sent.body
    assert "Marit" not in sent.body
    assert "4417" not in sent.body
    assert shop.world.refunds(number) == []


def test_a_reviewer_who_names_an_amount_after_a_no_is_heeded_up_to_what_is_left(shop: Shop) -> None:
    run = shop.mail(f"Order {shop.order()} never arrived.", sender="Somebody <s@quickmail.example>")
    answer(run, "refuse")
    advance_to_rest(run)
    decide(run, "reject", then="back", back_to="propose", comment="Pay €10.00 after all")
    asked = proposes(advance_to_rest(run), "10.00")
    assert "We cannot pay" not in asked.actions[1].arguments["text"]
    with pytest.raises(Invalid) as refused:
        edit(run, "refund", amount="45.01")
    assert "only €45.00 is left of the payment" in str(refused.value.errors)
