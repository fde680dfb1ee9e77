"""Clients' addresses: which belong to one client, and which are our own proxies."""

import ipaddress
from collections.abc import Callable, Sequence

_IPV6_SITE = 64  # bits: the smallest network that a provider gives one customer


def client_key(address: str) -> str:
    """Return the key that stands for one client: an IPv4 address, or the /64 network of an IPv6 address."""
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
    """Return a function that tells whether an address is in one of the networks. Raise ValueError for what is no address or network."""
    known = [ipaddress.ip_network(network) for network in networks]

    def matches(address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in known)

    return matches
