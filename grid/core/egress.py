"""The destinations outside the cluster that executions may connect to: what an admin allows, without what is always denied (pure).

NetworkPolicies only ever add to each other, so denied addresses are cut out of each allowed block.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeVar

from grid.core.translation import gettext as _

T = TypeVar("T")
Block = IPv4Network | IPv6Network


def _blocks(*texts: str) -> tuple[Block, ...]:
    return tuple(ip_network(text) for text in texts)


# These hand out a machine's own credentials: AWS (also for containers), Google, Azure, Alibaba, Oracle.
METADATA = _blocks(
    *("169.254.169.254/32", "169.254.170.2/32", "169.254.170.23/32", "168.63.129.16/32", "100.100.100.200/32"),
    *("192.0.0.192/32", "fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128"),
)
_LOOPBACK = _blocks("127.0.0.0/8", "::1/128")
_PRIVATE_4 = _blocks(
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
)
_MAPPED = ip_network("::ffff:0:0/96")
# In a network with NAT64, each IPv4 address is also reached through this IPv6 prefix.
_TRANSLATED = int(ip_network("64:ff9b::/96").network_address)
PRIVATE = (
    *_PRIVATE_4,
    # ::/96 and ::ffff:0:0:0/96 are further ways to write IPv4 addresses, fec0::/10 is what fc00::/7 was once.
    *_blocks("::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
    *(IPv6Network((_TRANSLATED + int(block.network_address), 96 + block.prefixlen)) for block in _PRIVATE_4),
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Addresses with a port that an admin has named; they may be private."""

    block: Block
    port: int


@dataclass(frozen=True, slots=True)
class Opening:
    """A block of addresses, the blocks cut out of it, and the only allowed port (0: any)."""

    block: Block
    without: tuple[Block, ...]
    port: int = 0


@dataclass(frozen=True, slots=True)
class Egress:
    """The admin's rules: `outward` never includes private addresses, `storage` may, public addresses in `denied` are never allowed."""

    outward: tuple[Block, ...] = ()
    storage: tuple[Destination, ...] = ()
    denied: tuple[Block, ...] = ()

    def openings(self, own: Iterable[Block]) -> list[Opening]:
        """Return what to allow; `own` are the addresses of the API server and of our database."""
        never = (*self.denied, *METADATA, *_LOOPBACK, *own)
        openings = [_opening(block, (*PRIVATE, *never)) for block in self.outward]
        openings += [_opening(named.block, never, named.port) for named in self.storage]
        return [opening for opening in openings if opening is not None]


def read_egress(outward: Sequence[str], storage: Sequence[str], denied: Sequence[str] = ()) -> tuple[Egress, list[str]]:
    """Return the rules, and a sentence for each invalid entry."""
    open_blocks, wrong_blocks = _read("GRID_EGRESS", outward, _outward)
    destinations, wrong_destinations = _read("GRID_STORAGE_EGRESS", storage, _destination)
    never, wrong_denials = _read("GRID_EGRESS_EXCEPT", denied, _block)
    return Egress(open_blocks, destinations, never), [*wrong_blocks, *wrong_destinations, *wrong_denials]


def read_blocks(setting: str, texts: Sequence[str]) -> tuple[tuple[Block, ...], list[str]]:
    """Return the blocks of addresses of a setting, and a sentence for each invalid entry."""
    return _read(setting, texts, _block)


def _read(setting: str, texts: Sequence[str], entry: Callable[[str], T]) -> tuple[tuple[T, ...], list[str]]:
    entries, mistakes = [], []
    for text in map(str.strip, texts):
        try:
            entries.append(entry(text))
        except ValueError as error:
            mistakes.append(_("{setting} names “{text}”, but {error}.", setting=setting, text=text, error=error))
    return tuple(entries), mistakes


def may_be_called(address: str, allowed: Iterable[Block], denied: Iterable[Block] = ()) -> bool:
    """Return True when our own processes may call an address that a person has named: it is public, or an admin allows it. What is denied,
    or hands out a machine's credentials, is never called, and neither is a text that is no address."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):  # two ways to write an IPv4 address
        parsed = parsed.ipv4_mapped or parsed.sixtofour or parsed
    if any(parsed in block for block in (*METADATA, *denied)):
        return False
    is_public = parsed.is_global and not parsed.is_multicast and not any(parsed in block for block in PRIVATE)
    return is_public or any(parsed in block for block in allowed)


def _block(text: str) -> Block:
    try:
        block = ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            first = ip_network(text, strict=False)
            raise ValueError(_("a block of addresses begins at its first one: {block}", block=first)) from error
        raise ValueError(_("that is no block of addresses such as 203.0.113.0/24")) from error
    if _is_inside(block, _MAPPED):  # API servers read these as IPv4, and then refuse the whole policy
        raise ValueError(_("IPv4 addresses are written as such"))
    return block


def _outward(text: str) -> Block:
    block = _block(text)
    if any(_is_inside(block, private) for private in PRIVATE):
        raise ValueError(_("private addresses are opened one by one, with their port, by GRID_STORAGE_EGRESS"))
    return block


def _destination(text: str) -> Destination:
    address, _colon, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(_("it has to end with a port, as in 10.20.0.5/32:9000 or [fd12::5]:9000"))
    if address.startswith("[") != (":" in address) or address.startswith("[") != address.endswith("]"):
        raise ValueError(_("an IPv6 address stands in brackets before its port, as in [fd12::5]:9000"))
    block = _block(address.strip("[]"))
    if any(_is_inside(block, never) for never in (*METADATA, *_LOOPBACK)):
        raise ValueError(_("a machine's own addresses and its cloud's metadata are never opened"))
    if any(_is_inside(private, block) for private in PRIVATE):
        raise ValueError(_("that is a whole private range and more than storage"))
    return Destination(block, int(port))


def _opening(block: Block, never: Iterable[Block], port: int = 0) -> Opening | None:
    """Return the opening, None when nothing of the block is left; Kubernetes wants exceptions smaller than the block and within it."""
    touching = {denied for denied in never if _is_inside(denied, block) or _is_inside(block, denied)}
    if any(_is_inside(block, denied) for denied in touching):
        return None
    whole = [inner for inner in touching if not any(inner != outer and _is_inside(inner, outer) for outer in touching)]
    return Opening(block, tuple(sorted(whole, key=lambda part: (int(part.network_address), part.prefixlen))), port)


def _is_inside(inner: Block, outer: Block) -> bool:
    return inner.version == outer.version and inner.prefixlen >= outer.prefixlen and inner.network_address in outer
