"""Replacement of Services' cluster IPs in texts. Pure.

A Service is reached at an address of this machine and not at its cluster IP (see `grid.sandbox.serviceproxy`). The kubelet
replaces the cluster IP in the command, the arguments and the values of the environment, wherever it is a whole address, alone or in
a URL, never inside a longer number. Addresses of no Service stay.
"""

from collections.abc import Iterable, Mapping

from grid.core.regexes import RepeatedExpression

# All numbers between dots; that there are four of up to three digits each makes an address of them.
_DOTTED = RepeatedExpression(r"[0-9]+(?:\.[0-9]+)+")


def addresses_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the addresses in the texts that may be a Service's, which excludes this machine's own (127.* and 0.*)."""
    addresses = {dotted for text in texts for dotted in _DOTTED.findall(text) if _is_address(dotted)}
    return frozenset(address for address in addresses if not address.startswith(("127.", "0.")))


def _is_address(dotted: str) -> bool:
    numbers = dotted.split(".")
    return len(numbers) == 4 and max(map(len, numbers)) <= 3


def replaced(text: str, places: Mapping[str, str]) -> str:
    return _DOTTED.sub(lambda match: places.get(match[0], match[0]), text) if places else text
