"""Addresses of Services in texts: found as whole addresses, nowhere else; and in everything that a container is told."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.kubelet.clusterips import addresses_in, replaced
from tests.sandbox.kubelet.support import World, pod

PLACES = {"10.96.3.7": "127.48.3.8", "10.96.3.70": "127.48.3.71"}
_NUMBERS = st.integers(0, 255).map(str)
_ADDRESSES = st.lists(_NUMBERS, min_size=4, max_size=4).map(".".join)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10.96.3.7", "127.48.3.8"),
        ("tcp://10.96.3.7:8786", "tcp://127.48.3.8:8786"),
        ("--address=10.96.3.7,10.96.3.70", "--address=127.48.3.8,127.48.3.71"),
        ("connect to 10.96.3.7.", "connect to 127.48.3.8."),
        ("ray://user@10.96.3.7/x?to=10.96.3.7", "ray://user@127.48.3.8/x?to=127.48.3.8"),
        ("110.96.3.7 10.96.3.701 1.10.96.3.7 10.96.3.7.1", "110.96.3.7 10.96.3.701 1.10.96.3.7 10.96.3.7.1"),
    ],
)
def test_an_address_is_replaced_only_as_a_whole(text: str, wanted: str) -> None:
    assert replaced(text, PLACES) == wanted


@given(address=_ADDRESSES, port=st.integers(1, 65535))
def test_every_address_in_a_url_is_found(address: str, port: int) -> None:
    url = f"tcp://{address}:{port}"
    local = address.startswith(("127.", "0."))
    assert addresses_in([url]) == (frozenset() if local else {address})
    assert replaced(url, {address: "HERE"}) == f"tcp://HERE:{port}"


async def test_the_command_and_the_environment_name_services_alike(world: World) -> None:
    world.services.places = {"10.96.3.7": "127.48.3.8"}
    environment: list[Any] = [
        {"name": "SCHEDULER", "value": "tcp://10.96.3.7:8786"},
        {"name": "OTHER", "value": "10.9.9.9"},
        {"name": "DERIVED", "value": "$(SCHEDULER)/x"},
    ]
    container = {"env": environment, "args": ["10.96.3.7"]}
    await world.run(pod("says", "echo $SCHEDULER $OTHER $DERIVED 10.96.3.7 $0", container=container))
    await world.phase("says", "Succeeded")
    assert world.log("says") == "tcp://127.48.3.8:8786 10.9.9.9 tcp://127.48.3.8:8786/x 127.48.3.8 127.48.3.8"
    assert [set(asked) for asked in world.services.asked] == [{"10.96.3.7", "10.9.9.9"}]


async def test_a_secret_is_given_as_it_is(world: World) -> None:
    world.services.places = {"10.96.3.7": "127.48.3.8"}
    secret = {"metadata": {"name": "s"}, "data": {"url": "MTAuOTYuMy43"}}
    await world.api.create("/api/v1/namespaces/default/secrets", secret)
    reference = {"secretKeyRef": {"name": "s", "key": "url"}}
    container = {"env": [{"name": "URL", "valueFrom": reference}]}
    await world.run(pod("secret", "echo $URL", container=container))
    await world.phase("secret", "Succeeded")
    assert world.log("secret") == "10.96.3.7"
