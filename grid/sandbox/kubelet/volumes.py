"""A pod's volumes as directories of this machine.

    emptyDir, configMap, secret, downwardAPI, projected    <pod>/volumes/<name>/, made before the containers, removed with the pod
    emptyDir of the name `sockets`                         `grid.sandbox.kubelet.sockets`
    ephemeral                                              that of a claim, or of an emptyDir if its PersistentVolume would be retained
    persistentVolumeClaim                                  the path of its PersistentVolume (hostPath or local);
                                                           DIR/volumes/<namespace>/<claim>/ for every other kind of volume
    hostPath                                               the path itself

Files of config maps and secrets are written whenever the pod's volumes are prepared; they do not follow later changes. Those of a
downwardAPI volume do (`renew`), as a pod's labels and annotations change while it runs. A volume that cannot be made is a `MountFailed`:
the pod waits and the kubelet tries again.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from grid.sandbox.client import Object, annotations_of, controller_of, name_of, namespace_of, uid_of
from grid.sandbox.kubelet import sockets
from grid.sandbox.kubelet.environment import ConfigError, DownwardFacts, Sources, field_value, resource_value
from grid.sandbox.kubelet.process_runtime import checked_name
from grid.sandbox.storage import PROVISIONED_BY, PROVISIONER

_SOURCES = ("configMap", "secret", "downwardAPI", "serviceAccountToken")


class MountFailed(Exception):
    """A volume cannot be made; the message is that of a FailedMount event."""


class VolumeSources(Sources, Protocol):
    async def claim(self, namespace: str, name: str) -> Object | None: ...

    async def volume(self, name: str) -> Object | None: ...

    async def service_account_token(self, namespace: str, account: str, request: Object) -> str: ...


class PodVolumes:
    """The directories of one pod's volumes, made by `prepare`."""

    def __init__(self, facts: DownwardFacts, *, directory: Path, claims: Path, sources: VolumeSources) -> None:
        self._facts = facts
        self._directory = directory
        self._claims = claims
        self._sources = sources

    async def prepare(self) -> dict[str, Path]:
        """Make and fill every volume's directory; return them by volume name. Repeating it only renews the files. Raise `MountFailed`."""
        places: dict[str, Path] = {}
        for volume in self._facts.pod["spec"].get("volumes") or ():
            name = str(volume["name"])
            try:
                places[name] = await self._place(checked_name(name), volume)
            except (ConfigError, ValueError, OSError) as error:
                raise MountFailed(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
        return places

    async def renew(self) -> None:
        """Write the files about the pod itself again."""
        for volume in self._facts.pod["spec"].get("volumes") or ():
            if "downwardAPI" in volume:
                await self._place(str(volume["name"]), volume)

    async def _place(self, name: str, volume: Object) -> Path:
        pod = self._facts.pod
        if "persistentVolumeClaim" in volume:
            claim = str(volume["persistentVolumeClaim"]["claimName"])
            bound = await self._volume_of(await self._bound_claim(claim))
            return self._persistent(bound) or _made(claim_directory(self._claims, namespace_of(pod), claim))
        if "hostPath" in volume:
            return _host_path(volume["hostPath"])
        place = self._directory / name
        if "ephemeral" in volume:
            claim = f"{name_of(pod)}-{name}"
            volume_claim = await self._bound_claim(claim)
            owner = controller_of(volume_claim)
            if owner is None or owner["uid"] != uid_of(pod):
                raise ConfigError(f'persistentvolumeclaim "{claim}" was not created for this pod')
            bound = await self._volume_of(volume_claim)
            goes_with_it = bound.get("spec", {}).get("persistentVolumeReclaimPolicy") == "Delete"
            place = (self._persistent(bound) if goes_with_it else None) or place
        if "emptyDir" in volume and name == sockets.SOCKETS:
            return sockets.made(place)
        if "emptyDir" in volume or "ephemeral" in volume:
            return _made(place)
        for kind in ("projected", *_SOURCES[:3]):
            if kind in volume:
                source = volume[kind] or {}
                parts = source.get("sources") or () if kind == "projected" else [{kind: source}]
                await self._fill(place, parts, int(source.get("defaultMode") or 0o644))
                return place
        kinds = ", ".join(key for key in volume if key != "name")
        raise ConfigError(f"a volume of kind {kinds or 'unknown'} is not supported by this cluster")

    async def _bound_claim(self, claim: str) -> Object:
        volume_claim = await self._sources.claim(namespace_of(self._facts.pod), claim)
        if volume_claim is None:
            raise ConfigError(f'persistentvolumeclaim "{claim}" not found')
        if (volume_claim.get("status") or {}).get("phase") != "Bound":
            raise ConfigError(f'persistentvolumeclaim "{claim}" is not bound')
        return volume_claim

    async def _volume_of(self, claim: Object) -> Object:
        name = (claim.get("spec") or {}).get("volumeName")
        return (await self._sources.volume(str(name)) if name else None) or {}

    def _persistent(self, volume: Object) -> Path | None:
        """Return the directory of a PersistentVolume that is one of this machine, or None."""
        own = provisioned_directory(self._claims, volume) if volume else None
        if own is not None:
            return _made(own)
        spec = volume.get("spec") or {}
        if spec.get("hostPath"):
            return _host_path(spec["hostPath"])
        return _host_path(spec["local"] | {"type": "Directory"}) if spec.get("local") else None

    async def _fill(self, place: Path, parts: Iterable[Object], default_mode: int) -> None:
        files: dict[str, tuple[bytes, int]] = {}
        for part in parts:
            kind = next((kind for kind in _SOURCES if kind in part), "")
            if not kind:
                raise ConfigError("a projected volume has a source of an unknown kind")
            files.update(await self._files(kind, part[kind] or {}, default_mode))
        _write_files(place, files)

    async def _files(self, kind: str, source: Object, default_mode: int) -> dict[str, tuple[bytes, int]]:
        namespace = namespace_of(self._facts.pod)
        mode = int(source.get("defaultMode") or default_mode)
        if kind == "downwardAPI":
            return {
                str(item["path"]): (self._downward(item).encode(), int(item.get("mode") or mode))
                for item in source.get("items") or ()
            }
        if kind == "serviceAccountToken":
            account = str(self._facts.pod["spec"].get("serviceAccountName") or "default")
            token = await self._sources.service_account_token(namespace, account, source)
            return {str(source.get("path", "token")): (token.encode(), 0o600)}
        name = str(source.get("secretName") or source.get("name") or "")
        data = await (self._sources.secret if kind == "secret" else self._sources.config_map)(namespace, name)
        if data is None:
            if source.get("optional"):
                return {}
            raise ConfigError(f'{kind.lower()} "{name}" not found')
        return _chosen(data, source, mode, kind)

    def _downward(self, item: Object) -> str:
        if item.get("fieldRef"):
            return field_value(item["fieldRef"].get("fieldPath", ""), self._facts)
        return resource_value(item.get("resourceFieldRef") or {}, {}, self._facts)


def claim_directory(claims: Path, namespace: str, claim: str) -> Path:
    return claims / checked_name(namespace) / checked_name(claim)


def provisioned_directory(claims: Path, volume: Mapping[str, Any]) -> Path | None:
    """Return the directory of a volume that this cluster's provisioner made; None for any other volume.

    It is found by its name and not by its path, because people move and restore data directories. A volume of a claim from before there
    were PersistentVolumes has the directory that is named after the claim.
    """
    if annotations_of(volume).get(PROVISIONED_BY) != PROVISIONER:
        return None
    if Path(str((volume["spec"].get("hostPath") or {}).get("path", ""))).name == name_of(volume):
        return claims / checked_name(name_of(volume))
    owner = volume["spec"]["claimRef"]
    return claim_directory(claims, owner["namespace"], owner["name"])


def _made(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def mount_places(container: Object, volumes: Mapping[str, Path]) -> dict[str, Path]:
    """Return the directory of each mount path of a container; a `subPath` inside a volume is created when needed."""
    places: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(str(mount["name"]))
        if volume is None:
            raise ConfigError(f'volume mount "{mount["name"]}" has no volume of that name')
        sub_path = str(mount.get("subPath") or "")
        place = volume / sub_path
        if sub_path:
            if sub_path.startswith("/") or ".." in Path(sub_path).parts:
                raise ConfigError(f'subPath "{sub_path}" must stay inside its volume')
            if not place.exists():
                place.mkdir(parents=True, exist_ok=True)
        places[str(mount["mountPath"])] = place
    return places


def _host_path(source: Object) -> Path:
    path = Path(str(source.get("path", "/")))
    if source.get("type") in ("DirectoryOrCreate", "FileOrCreate"):
        path.mkdir(parents=True, exist_ok=True)
    if source.get("type") and not path.exists():
        raise ConfigError(f"hostPath type check failed: {path} does not exist")
    return path


def _chosen(data: Mapping[str, bytes], source: Object, mode: int, kind: str) -> dict[str, tuple[bytes, int]]:
    items = source.get("items")
    if not items:
        return {key: (value, mode) for key, value in data.items()}
    chosen: dict[str, tuple[bytes, int]] = {}
    for item in items:
        if item["key"] in data:
            chosen[str(item["path"])] = (data[item["key"]], int(item.get("mode") or mode))
        elif not source.get("optional"):
            raise ConfigError(f"references non-existent {kind.lower()} key: {item['key']}")
    return chosen


def _write_files(place: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Make the directory hold exactly these files, each replaced atomically."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, (content, mode) in files.items():
        parts = Path(name).parts
        if not parts or name.startswith("/") or ".." in parts:
            raise ConfigError(f"“{name}” must be a path inside the volume")
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.write_bytes(content)
        unfinished.chmod(mode | 0o400)
        unfinished.replace(path)
    for path in place.rglob("*"):
        if path.is_file() and str(path.relative_to(place)) not in files:
            path.unlink()


def remove(directory: Path) -> None:
    """Remove a pod's volumes, even where a program removed the write permission."""
    sockets.remove(directory)

    def make_writable(_function: object, path: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            Path(path).parent.chmod(0o700)
            os.unlink(path)  # noqa: PTH108  rmtree hands over a text

    shutil.rmtree(directory, onerror=make_writable)
