"""Asks the cluster for its version and for the APIs that it serves, once when a leader begins and then each hour."""

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import msgspec

from grid.core.errors import GridError, NotFound
from grid.kube.api import KubeApi
from grid.platformhealth.versions import USED, VersionLine, version_lines

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 3600.0


class VersionReader:
    """Keeps the last answer for an hour; one in which something was not known only until the next look."""

    def __init__(self, api: KubeApi, *, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._monotonic = monotonic
        self._lines: tuple[VersionLine, ...] = ()
        self._read_at = float("-inf")

    async def lines(self) -> tuple[VersionLine, ...]:
        if self._monotonic() - self._read_at < PERIOD_SECONDS:
            return self._lines
        lines = await read_versions(self._api)
        for line in set(lines).difference(self._lines):
            if line.severity == "problem":
                logger.warning("incompatible version of=%s: %s", line.subject, line.sentence)
        if lines[:1] != self._lines[:1]:
            logger.info("versions: %s", lines[0].sentence)
        self._lines = lines
        if all(line.severity != "wait" for line in lines):
            self._read_at = self._monotonic()
        return lines


async def read_versions(api: KubeApi) -> tuple[VersionLine, ...]:
    """Ask for the version and for each group that we use. What is not answered is left out, and told as not known."""
    try:
        server = str((await _object(api, "/version")).get("gitVersion", ""))
    except GridError:
        server = ""
    served: dict[str, frozenset[str] | None] = {}
    for group_version in dict.fromkeys(used.group_version for used in USED):
        prefix = "/apis" if "/" in group_version else "/api"
        try:
            answer = await _object(api, f"{prefix}/{group_version}")
        except NotFound:
            served[group_version] = None
        except GridError:
            continue
        else:
            served[group_version] = frozenset(str(each.get("name")) for each in answer.get("resources") or ())
    return version_lines(server, version("kubernetes"), served)


async def _object(api: KubeApi, path: str) -> dict[str, Any]:
    """Return the answer; {} when it is not what a Kubernetes server says."""
    try:
        return msgspec.json.decode(await api.server_text(path), type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
