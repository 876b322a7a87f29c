"""Parses the addresses of webhooks strictly: one that two programs could read differently is refused."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from .addresses import is_permitted, read_as

LONGEST = 2000  # characters
_WRITTEN = re.compile(r"[!-\[\]-~]+")  # visible ASCII without the backslash
_HOST = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.?")


class OutboundTarget(NamedTuple):
    """The parsed target of an address."""

    secure: bool
    authority: str  # host and port as in the Host header: without the scheme's default port


def fault(url: str) -> str:
    """Say why nothing may be sent to this address, and what to do; "" where it is allowed."""
    if len(url) > LONGEST:
        return f"Write an address of at most {LONGEST:,} characters."
    if not _WRITTEN.fullmatch(url):
        return "Write the address in plain ASCII, without spaces: a host in other letters as xn--…"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "This is no address; write one like https://hooks.example.com/holdpoint."
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        return "Write a whole address, like https://hooks.example.com/holdpoint."
    if "@" in parts.netloc:
        return "Leave the name and password out of the address: what is sent is signed, check that."
    if "#" in url:
        return "Leave out what begins with #; it is never sent."
    if parts.scheme == "http" and not settings.HOLDPOINT_WEBHOOKS_PRIVATE:
        return "Write an address that begins with https://."
    return _host_fault(parts.hostname)


def _host_fault(host: str) -> str:
    address = read_as(host)
    if address is None:
        fits = _HOST.fullmatch(host)
        return "" if fits else "The host is not valid. Write an address like https://hooks.example.com/."
    if is_permitted(address, settings.HOLDPOINT_WEBHOOKS_PRIVATE):
        return ""
    return "This is a private address. Webhooks go to the public internet, and to HOLDPOINT_WEBHOOKS_PRIVATE."


def target_of(url: str) -> OutboundTarget | None:
    """Parse an address; None where nothing may be sent there by the present settings."""
    if fault(url):
        return None
    parts = urlsplit(url)
    secure, host = parts.scheme == "https", parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = parts.port in (None, 443 if secure else 80)
    return OutboundTarget(secure, host if usual else f"{host}:{parts.port}")


def host_of(url: str) -> str:
    """Return the host alone, for events and lists."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
