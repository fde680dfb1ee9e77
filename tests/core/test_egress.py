"""What an admin may open outward, what stays shut whatever he writes, and which sentence a mistake gets."""

from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

import pytest
from hypothesis import given, strategies as st

from grid.core.egress import Egress, read_egress

EVERYWHERE = ["0.0.0.0/0", "::/0"]


def reaches(egress: Egress, address: str, port: int = 443, *, own: tuple[str, ...] = ()) -> bool:
    parsed = ip_address(address)
    return any(
        parsed in opening.block and not any(parsed in block for block in opening.without) and opening.port in (0, port)
        for opening in egress.openings([ip_network(address) for address in own])
    )


def read(outward: list[str], storage: list[str] | None = None, denied: list[str] | None = None) -> Egress:
    egress, mistakes = read_egress(outward, storage or [], denied or [])
    assert mistakes == []
    return egress


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "127.0.0.1", "0.0.0.0", "224.0.0.1"),
        *("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "240.0.0.1"),
        *("::1", "::", "fc00::1", "fd00:ec2::254", "fe80::1", "ff02::1"),
        *("::7f00:1", "::ffff:0:7f00:1", "fec0::1"),
        *("64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::127.0.0.1"),
    ],
)
def test_the_way_outward_never_leads_to_a_private_address(address: str) -> None:
    assert not reaches(read(EVERYWHERE), address)


@pytest.mark.parametrize("address", ["1.1.1.1", "172.32.0.1", "11.0.0.1", "2606:4700::1111", "64:ff9b::1.1.1.1"])
def test_the_way_outward_leads_to_public_addresses(address: str) -> None:
    assert reaches(read(EVERYWHERE), address)


def test_egress_without_names_opens_nothing() -> None:
    assert read([]).openings([]) == []


def test_own_public_addresses_and_admin_exceptions_are_cut_out() -> None:
    egress = read(["34.0.0.0/8"], denied=["34.9.0.0/16"])
    assert not reaches(egress, "34.1.2.3", own=("34.1.2.3/32",))
    assert not reaches(egress, "34.9.1.1")
    assert reaches(egress, "34.1.2.4", own=("34.1.2.3/32",))


def test_block_holding_only_the_api_server_opens_nothing() -> None:
    assert read(["34.1.2.3/32"], ["10.0.0.1:6443"]).openings([ip_network("34.1.2.3"), ip_network("10.0.0.1")]) == []


def test_storage_is_opened_at_its_port_despite_private_address() -> None:
    egress = read([], ["10.20.0.0/28:9000", "10.30.0.5:9000", "[fd12::5]:9000"])
    assert all(reaches(egress, address, 9000) for address in ("10.20.0.5", "10.30.0.5", "fd12::5"))
    assert not reaches(egress, "10.20.0.5", 22)
    assert not reaches(egress, "10.20.0.5", 9000, own=("10.20.0.5/32",)), "the API server has that address"


@pytest.mark.parametrize(
    ("outward", "storage", "word"),
    [
        ("10.0.0.0/8", "", "GRID_STORAGE_EGRESS"),
        ("1.2.3.4/24", "", "1.2.3.0/24"),
        ("::ffff:1.2.3.0/120", "", "as such"),
        ("", "10.0.0.5", "port"),
        ("", "10.0.0.5:99999", "port"),
        ("", "fd12::5:9000", "brackets"),
        ("", "storage.example.com:443", "no block"),
        ("", "169.254.169.254:80", "metadata"),
        ("", "127.0.0.1:5432", "own addresses"),
        ("", "0.0.0.0/0:443", "more than storage"),
    ],
)
def test_invalid_egress_entry_is_named_and_opens_nothing(outward: str, storage: str, word: str) -> None:
    egress, mistakes = read_egress([outward] if outward else [], [storage] if storage else [])
    (mistake,) = mistakes
    assert word in mistake and (outward or storage) in mistake
    assert egress.openings([]) == []


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), max_size=4))
def test_exception_lies_in_its_block_and_is_smaller(blocks: list[tuple[int, int]]) -> None:
    """As the API server wants it: it refuses a whole policy otherwise."""
    denied = [str(IPv4Network((str(IPv4Address(address)), length), strict=False)) for address, length in blocks]
    for opening in read(["0.0.0.0/0", "34.0.0.0/8", "8.8.8.8"], denied=denied).openings([]):
        for block in opening.without:
            assert not str(block).startswith("::ffff:"), "which it takes for IPv4"
            assert block != opening.block and block.subnet_of(opening.block)  # type: ignore[arg-type]
        assert len(set(opening.without)) == len(opening.without)
