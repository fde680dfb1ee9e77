"""Addresses of Services in texts. Pure.

A Service is reached at an address of this machine and not at its cluster IP (see `grid.sandbox.serviceproxy`). The kubelet puts
the one in the place of the other in the command, the arguments and the values of the environment: wherever the cluster IP stands
as a whole address, alone or in a URL, never inside a longer number. Addresses of no Service stay.
"""

import re
from collections.abc import Iterable, Mapping

_ADDRESS = re.compile(r"(?<![0-9])(?<![0-9]\.)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.?[0-9])")


def addresses_in(texts: Iterable[str]) -> frozenset[str]:
    """What may be the address of a Service: not this machine's own ones."""
    found = {address for text in texts for address in _ADDRESS.findall(text)}
    return frozenset(address for address in found if not address.startswith(("127.", "0.")))


def replaced(text: str, places: Mapping[str, str]) -> str:
    return _ADDRESS.sub(lambda match: places.get(match.group(), match.group()), text) if places else text
