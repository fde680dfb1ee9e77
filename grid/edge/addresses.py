"""Clients' addresses: who is one client, and which are proxies of our own."""

import ipaddress
from collections.abc import Callable, Sequence

_IPV6_SITE = 64  # bits: the smallest network that a provider gives one customer


def client_key(address: str) -> str:
    """What counts as one client: an IPv4 address, or the IPv6 network of one customer."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))


def matcher(networks: Sequence[str]) -> Callable[[str], bool]:
    """Whether an address is in one of these addresses and networks. Raises ValueError for what is neither."""
    known = [ipaddress.ip_network(network) for network in networks]

    def matches(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in known)

    return matches
