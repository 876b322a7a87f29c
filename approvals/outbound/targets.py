"""Checks the addresses of requests that somebody else wrote. A host is looked up once, and that address is used.

An internal address (private, loopback, link-local, a metadata service) would let the author of the request act as this
machine. A name is resolved here, all of its addresses are checked, and the caller connects to the one returned: a
second lookup could give another one (DNS rebinding). A webhook's address is parsed strictly: one that two programs
could read differently is refused.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

Address = IPv4Address | IPv6Address
Networks = Sequence[str]  # in CIDR notation
# These contain an IPv4 address to which some router forwards: NAT64 (RFC 6052, RFC 8215), 6to4, Teredo, IPv4-compatible
# (RFC 4291) and IPv4-translated (RFC 2765) addresses.
_EMBEDDING = ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96")
# Formally public, but reserved for protocols and documentation (IANA's special-purpose registries), and the address by
# which a large cloud's machines reach their own host.
_SPECIAL = ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20", "fec0::/10", "168.63.129.16/32")
_NEVER = [ip_network(word) for word in (*_EMBEDDING, *_SPECIAL)]
LONGEST = 2000  # characters
_WRITTEN = re.compile(r"[!-\[\]-~]+")  # visible ASCII without the backslash
_HOST = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.?")


class AddressRefused(Exception):
    """The host cannot be looked up, or is not one to connect to; `code` says which: dns_failed, private_address."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def resolve_address(host: str, port: int, *, inside: Networks = ()) -> str:
    """Return the address of `host` to connect to: the first of `resolve_addresses`."""
    return resolve_addresses(host, port, inside=inside)[0]


def resolve_addresses(host: str, port: int, *, inside: Networks = ()) -> list[str]:
    """List the addresses of `host`. `inside`: private networks that are allowed all the same.

    Raises AddressRefused where there is none, or where any of them is not allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressRefused("dns_failed", f"{host} has no address that can be looked up") from error
    addresses = list(dict.fromkeys(str(item[4][0]).partition("%")[0] for item in found))
    for address in addresses:
        if not is_permitted(ip_address(address), inside):
            raise AddressRefused("private_address", f"{host} is {address}, which is not a public address")
    return addresses


def read_as(host: str) -> Address | None:
    """Return the address that a resolver reads in `host` without asking anybody; None for a name.

    It takes `127.1`, `0x7f.1` and `2130706433` for 127.0.0.1, and `localhost` and the names below it too (RFC 6761).
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return IPv4Address("127.0.0.1")
    try:
        return ip_address(name)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(name))
    except OSError:
        return None


def is_permitted(address: Address, inside: Networks = ()) -> bool:
    """Tell whether the address is public, or in one of the networks `inside`."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return is_permitted(address.ipv4_mapped, inside)
    if is_within(address, inside):
        return True
    return address.is_global and not address.is_multicast and not any(address in net for net in _NEVER)


def is_within(address: Address, networks: Networks) -> bool:
    """Tell whether the address is in one of these networks."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return is_within(address.ipv4_mapped, networks)
    return any(address in net for net in map(ip_network, networks))


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
