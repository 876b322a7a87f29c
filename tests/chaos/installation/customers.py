"""The refunds agent's world: a shop's file of many orders, and a mail about one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLUMNS = "order,customer,company,email,currency,card,paid_on,shipping,refunded,item,quantity,price,parcel,returned_on"
FIRST, MANY = 20000, 400
MAIL = """From: Customer {number} <customer{number}@fernhollow.example>
To: service@shop.example
Subject: Order {number}: the frames are on their way back
Date: Sat, 21 Nov 2026 13:38:04 +0100
Message-ID: <{number}@fernhollow.example>
MIME-Version: 1.0
Content-Type: text/plain; charset="utf-8"

Good afternoon,

on Tuesday I sent back the two titanium frames from order {number}.
Could you put the money back on the card we paid with, please?

Kind regards
Customer {number}
"""


def write_orders(path: Path) -> None:
    lines = [
        f"{number},Customer {number},,customer{number}@fernhollow.example,EUR,4417,2026-11-02,5.00,0.00,"
        f"Titanium frames,2,{100 + number % 400}.00,1,2026-11-19"
        for number in range(FIRST, FIRST + MANY)
    ]
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")


def mail(count: int) -> dict[str, Any]:
    """Return the input of a run: the mail about an order that no other count has, up to MANY."""
    number = FIRST + count % MANY
    return {"mail": {"name": f"{number}.eml", "raw": MAIL.format(number=number)}}
