"""The ledger as a page for a person."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = """
:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
caption { padding: 1.5rem 0 .5rem; font-weight: 600; text-align: start }
th, td { padding: .3rem .75rem .3rem 0; border-block-end: 1px solid #8886; text-align: start; overflow-wrap: anywhere }
td.amount, th.amount { text-align: end; white-space: nowrap }
"""
_REFUNDS = ("id", "charge", "amount", "currency", "card", "reason", "status", "at", "key")
_ENTRIES = ("seq", "at", "kind", "id", "charge", "amount", "currency", "key")


def of(entries: list[dict[str, Any]], refunds: list[dict[str, Any]]) -> str:
    """Return the whole page: refunds as they stand, then every entry, the newest first."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Payment sandbox</title><style>{_STYLE}</style><h1>Payment sandbox</h1>"
        "<p>No money moves here. Every refund stands in this ledger once, however often it was asked for.</p>"
        f"{_table(f'{len(refunds)} refunds', _REFUNDS, reversed(refunds))}"
        f"{_table(f'{len(entries)} entries', _ENTRIES, reversed(entries))}</html>"
    )


def _table(caption: str, columns: tuple[str, ...], rows: Iterable[dict[str, Any]]) -> str:
    head = "".join(f"<th scope=col{_kind(name)}>{name}" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td{_kind(name)}>{escape(str(row.get(name, '')))}" for name in columns) for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</thead><tbody>{body}</tbody></table>"


def _kind(name: str) -> str:
    return " class=amount" if name == "amount" else ""
