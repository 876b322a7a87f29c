"""Where a request that somebody else words may go: a name is looked up once, and what it says is what is connected to.

An address inside (private, loopback, link-local, a metadata service) would let whoever words the request speak as this
machine does. A name is resolved here, every address that it has is looked at, and the one that is returned is the one
to connect to: to look it up again would let it have become another.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Networks = Sequence[str]  # in CIDR notation
# These carry an IPv4 address that some router takes out again: NAT64 (RFC 6052, RFC 8215), 6to4, Teredo, and what is
# compatible with IPv4 or translated from it (RFC 4291, RFC 2765).
_EMBEDDING = [
    IPv6Network(each)
    for each in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96")
]


class AddressRefused(Exception):
    """The host cannot be looked up, or is not one to connect to; `code` says which: dns_failed, private_address."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def checked(host: str, port: int, *, inside: Networks = ()) -> str:
    """The address of `host` to connect to. `inside`: networks that are not public and allowed all the same.

    Raises AddressRefused where there is none, or where any of them is not allowed.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise AddressRefused("dns_failed", f"{host} has no address that can be looked up") from error
    addresses = [str(each[4][0]).partition("%")[0] for each in found]
    for address in addresses:
        if not permitted(ip_address(address), inside):
            raise AddressRefused("private_address", f"{host} is {address}, which is not a public address")
    return addresses[0]


def permitted(address: Address, inside: Networks = ()) -> bool:
    """Whether it is public, or in one of the networks `inside`."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return permitted(address.ipv4_mapped, inside)
    if any(address.version == net.version and address in net for net in map(ip_network, inside)):
        return True
    if isinstance(address, IPv6Address) and any(address in net for net in _EMBEDDING):
        return False
    return address.is_global and not address.is_multicast
