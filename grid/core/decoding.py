"""Decoding into Structs by several threads.

msgspec (0.22) stores what it knows of a Struct on its class as soon as it begins to find it out. A second thread that decodes meanwhile
uses the unfinished, and the process ends by a segmentation fault. So a type is made known under a lock before anybody decodes into it.
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_lock = threading.RLock()  # a type may have others made known while its own annotations are read
_prepared: set[Any] = set()


def prepared(type: type[T]) -> type[T]:
    """Return the type, into which any thread can now decode: `msgspec.convert(stored, prepared(Settings))`."""
    if type not in _prepared:
        with _lock:
            msgspec.json.Decoder(type)
            _prepared.add(type)
    return type
