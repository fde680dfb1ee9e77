"""Replacement of Services' cluster IPs in texts. Pure.

A Service is reached at an address of this machine and not at its cluster IP (see `grid.sandbox.serviceproxy`). The kubelet
replaces the cluster IP in the command, the arguments and the values of the environment, wherever it is a whole address, alone or in
a URL, never inside a longer number. Addresses of no Service stay.
"""

import re
from collections.abc import Iterable, Mapping

_ADDRESS = re.compile(r"(?<![0-9])(?<![0-9]\.)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?[0-9])")


def addresses_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the addresses in the texts that may be a Service's, which excludes this machine's own (127.* and 0.*)."""
    found = {address for text in texts for address in _ADDRESS.findall(text)}
    return frozenset(address for address in found if not address.startswith(("127.", "0.")))


def replaced(text: str, places: Mapping[str, str]) -> str:
    return _ADDRESS.sub(lambda match: places.get(match.group(), match.group()), text) if places else text
