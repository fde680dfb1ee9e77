"""The cells of endpoints in tables, and the containers of a template."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from grid.sandbox.apiserver.ages import age
from grid.sandbox.apiserver.kinds import Object

_MOST_SHOWN = 3


def container_texts(template: Object | None) -> tuple[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    return ",".join(each["name"] for each in containers), ",".join(each.get("image", "") for each in containers)


def endpoint_slice_cells(obj: Object, now: datetime) -> list[Any]:
    ports = [str(port.get("port", "*")) for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    name = obj["metadata"]["name"]
    return [name, obj.get("addressType", ""), _few(ports), _few(addresses), age(obj, now)]


def _few(items: Sequence[str]) -> str:
    more = f" + {len(items) - _MOST_SHOWN} more..." if len(items) > _MOST_SHOWN else ""
    return ",".join(items[:_MOST_SHOWN]) + more if items else "<unset>"
