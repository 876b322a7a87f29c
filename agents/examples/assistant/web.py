"""Fetches an address for the assistant: one GET to exactly the approved host, and never to an internal address.

A redirect is reported and not followed, since only this address was approved. The host is looked up once, and the
address that was checked is connected to (approvals.outbound.targets). A GET is safe and may be repeated (RFC 9110
§9.2), so any outcome is told to the model and no effect is left unknown.
"""

from __future__ import annotations

import time

import httpx
from django.conf import settings

from agents.effects.http import trusted
from approvals.outbound.targets import AddressRefused, resolve_address

LARGEST = 1_000_000  # bytes that are read of a body
TOLD = 16_000  # characters of it that the model is told
SECONDS = 30.0  # for all of it
PLAIN = "identity"  # the only coding: a packed body says nothing of how much it holds
PORTS = {"http": 80, "https": 443}
TEXTS = ("text/", "application/json", "application/xml", "application/javascript")
# By the names that pages use. Python knows more, of which some raise, and some make text that no state holds.
CHARSETS = (
    "utf-8 us-ascii iso-8859-1 iso-8859-2 iso-8859-15 windows-1250 windows-1251 windows-1252 koi8-r shift_jis euc-jp "
    "euc-kr gb2312 gbk gb18030 big5 utf-16 utf-16le utf-16be"
)


class AddressWrong(ValueError):
    """The text is no address that can be fetched; the sentence says why."""


def parse_address(url: str) -> httpx.URL:
    """Parse an address as it would be fetched. Raises AddressWrong."""
    try:
        found = httpx.URL(url)
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise AddressWrong(f"it cannot be read: {error}") from error
    if found.scheme not in PORTS or not found.host:
        raise AddressWrong("it is to begin with http:// or https:// and to name a host")
    if found.userinfo:
        raise AddressWrong("it holds a name or a password")
    return found


def get(url: str) -> str:
    """Fetch an address, and say in words and text what came back. Never raises for what the other side does."""
    try:
        address = parse_address(url)
        port = address.port or PORTS[address.scheme]
        to = resolve_address(address.host, port, inside=settings.HOLDPOINT_ASSISTANT_NETWORKS)
        return _fetch(address, to)
    except (AddressWrong, AddressRefused) as refused:
        return f"Nothing was fetched: {refused}."
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        return f"Nothing came back: {type(error).__name__}: {error}"


def _fetch(address: httpx.URL, to: str) -> str:
    headers = {"Host": address.netloc.decode("ascii"), "Accept": "text/*, application/json", "User-Agent": "holdpoint"}
    headers["Accept-Encoding"] = PLAIN
    # The certificate is held against the name, though the connection goes to the address that was looked at.
    extensions = {"sni_hostname": address.host} if address.scheme == "https" else {}
    until = time.monotonic() + SECONDS
    with (
        httpx.Client(timeout=httpx.Timeout(10.0), trust_env=False, verify=trusted(), follow_redirects=False) as client,
        client.stream("GET", address.copy_with(host=to), headers=headers, extensions=extensions) as answer,
    ):
        first = f"HTTP {answer.status_code} {answer.reason_phrase}".strip()
        if answer.is_redirect:
            where = address.join(answer.headers.get("location", ""))
            return f"{first}: it is at {where} now. Nothing was followed; ask for that address if you want it."
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind and not (kind.startswith(TEXTS) or kind.endswith(("+json", "+xml"))):
            return f"{first}, {kind}: no text, so nothing of it is told."
        if (packed := answer.headers.get("content-encoding", PLAIN).strip().lower()) != PLAIN:
            return f"{first}, packed as {packed[:100]}, which was not asked for: nothing of it is told."
        body, whole = bytearray(), True
        for block in answer.iter_raw():
            body += block
            if len(body) > LARGEST or time.monotonic() > until:
                whole = False
                break
    text = bytes(body[:LARGEST]).decode(_charset(answer), errors="replace")
    cut = "" if whole and len(text) <= TOLD else f"\n… only its first {min(len(text), TOLD):,} characters are told."
    return f"{first}, {kind or 'of no kind that it says'}\n\n{text[:TOLD]}{cut}"


def _charset(answer: httpx.Response) -> str:
    """Return the character set that the answer names, or UTF-8 if it is not one of CHARSETS."""
    named = (answer.charset_encoding or "utf-8").lower()
    return named if named in CHARSETS.split() else "utf-8"
