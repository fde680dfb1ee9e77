"""Preparation of a container's attempt from the pod's spec: image, environment, mounts, Services, command.

A step that fails raises `CannotStartYet` with the container's waiting reason in Kubernetes' words, and records events; the pod's
worker decides when to try again.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from grid.core.quantity import whole
from grid.sandbox.client import Object, name_of, namespace_of, uid_of
from grid.sandbox.imagestore import PulledImage, PullFailed
from grid.sandbox.kubelet.backoff import spell
from grid.sandbox.kubelet.clusterips import addresses_in, replaced
from grid.sandbox.kubelet.environment import (
    ConfigError,
    DownwardFacts,
    Sources,
    Variable,
    environment_of,
    expand,
    expand_all,
)
from grid.sandbox.kubelet.mounts import Mounts
from grid.sandbox.kubelet.podstatus import ContainerRole, WaitingReason
from grid.sandbox.kubelet.runtime import PodIdentity, ResolvedContainer
from grid.sandbox.kubelet.services import Services
from grid.sandbox.kubelet.volumes import mount_places

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_DEFAULT_MESSAGE_PATH = "/dev/termination-log"


class CannotStartYet(Exception):
    """The container cannot start now; `waiting` is shown in its status meanwhile."""

    def __init__(self, waiting: WaitingReason) -> None:
        super().__init__(waiting.message)
        self.waiting = waiting


class Starter:
    """The preparation of one pod's containers."""

    def __init__(self, services: Services, sources: Sources, facts: DownwardFacts, volumes: Mapping[str, Path]) -> None:
        self._services = services
        self._sources = sources
        self._facts = facts
        self._volumes = volumes

    async def image(self, container: Object, field: str) -> PulledImage:
        """Return the container's image, pulled as its policy says. Raise `CannotStartYet`."""
        services, pod, name = self._services, self._facts.pod, str(container["image"])
        policy = container.get("imagePullPolicy") or "IfNotPresent"
        present = services.images.present(name)
        if present is not None and policy != "Always":
            services.events.about_pod(
                pod, "Pulled", f'Container image "{name}" already present on machine', field=field
            )
            return present
        if policy == "Never":
            problem = f'Container image "{name}" is not present with pull policy of Never'
            services.events.about_pod(pod, "ErrImageNeverPull", problem, type="Warning", field=field)
            services.events.about_pod(pod, "Failed", "Error: ErrImageNeverPull", type="Warning", field=field)
            raise CannotStartYet(WaitingReason("ErrImageNeverPull", problem))
        services.events.about_pod(pod, "Pulling", f'Pulling image "{name}"', field=field)
        asked = time.monotonic()
        try:
            pulled, pulling = await services.images.pull(name)
        except PullFailed as error:
            problem = f'Failed to pull image "{name}": {error}'
            services.events.about_pod(pod, "Failed", problem, type="Warning", field=field)
            services.events.about_pod(pod, "Failed", "Error: ErrImagePull", type="Warning", field=field)
            raise CannotStartYet(WaitingReason("ErrImagePull", str(error))) from error
        waited = time.monotonic() - asked
        services.events.about_pod(
            pod,
            "Pulled",
            f'Successfully pulled image "{name}" in {spell(round(pulling, 3))} '
            f"({spell(round(waited, 3))} including waiting). Image size: {pulled.size_bytes} bytes.",
            field=field,
        )
        return pulled

    async def spec(self, container: Object, number: int, image: PulledImage, field: str) -> ResolvedContainer:
        """Return the attempt with all references resolved. Raise `CannotStartYet` with CreateContainerConfigError."""
        try:
            return await self._spec(container, number, image)
        except (ConfigError, ValueError) as error:
            message = f"Error: {error}"
            self._services.events.about_pod(self._facts.pod, "Failed", message, type="Warning", field=field)
            raise CannotStartYet(WaitingReason("CreateContainerConfigError", str(error))) from error

    async def _spec(self, container: Object, number: int, image: PulledImage) -> ResolvedContainer:
        pod, name = self._facts.pod, str(container["name"])
        root = self._services.runtime.root(uid_of(pod), name, number)
        message_path = str(container.get("terminationMessagePath") or _DEFAULT_MESSAGE_PATH)
        places = {message_path: root.parent / "termination-log"} | mount_places(container, self._volumes)
        mounts = Mounts({path: str(place) for path, place in places.items()})
        wanted = await environment_of(container, self._facts, self._sources)
        values = {key: variable.value for key, variable in wanted.items()}
        command = expand_all(container.get("command") or (), values)
        arguments = expand_all(container.get("args") or (), values)
        argv = command + arguments if command else [*image.image.command, *arguments]
        if not argv:
            raise ConfigError("no command specified")
        directory = mounts.rewrite(expand(str(container.get("workingDir") or ""), values))
        argv = [mounts.rewrite(word) for word in argv]
        texts = {key: variable.value for key, variable in wanted.items() if not variable.secret}
        named = addresses_in([*argv, *texts.values(), *_handlers_words(container)])
        service_places = await self._services.service_places.places_of(named)
        wanted = wanted | {
            key: Variable(replaced(mounts.rewrite(text), service_places), False) for key, text in texts.items()
        }
        return ResolvedContainer(
            pod=PodIdentity(uid_of(pod), namespace_of(pod), name_of(pod)),
            container=name,
            number=number,
            image=str(container["image"]),
            image_id=image.image.id,
            argv=[replaced(word, service_places) for word in argv],
            env=_environment(wanted, image, root, str(pod["spec"].get("hostname") or name_of(pod))),
            cwd=str(_working_directory(directory, root)),
            memory_limit=_memory_limit(container),
            mounts=mounts.places,
            service_places=service_places,
        )


def _handlers_words(container: Object) -> Iterator[str]:
    """Yield the commands of hooks and probes, which are run later and may also name Services."""
    handlers = [*(container.get("lifecycle") or {}).values()]
    handlers += [container[key] for key in ("livenessProbe", "readinessProbe", "startupProbe") if container.get(key)]
    for handler in handlers:
        yield from (handler.get("exec") or {}).get("command") or ()


def _environment(wanted: Mapping[str, Variable], image: PulledImage, root: Path, host_name: str) -> dict[str, str]:
    """Return the image's variables, then the pod's. None comes from the environment of the cluster's process."""
    result = {
        "PATH": f"{image.environment / 'bin'}:{_PATH}",
        "VIRTUAL_ENV": str(image.environment),
        "HOME": str(root),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "HOSTNAME": host_name,
    }
    return result | {name: variable.value for name, variable in wanted.items()}


def _working_directory(wanted: str, root: Path) -> Path:
    """Return the directory; an absolute one that this machine lacks is created inside the container's own."""
    if not wanted:
        return root
    path = Path(wanted)
    if path.is_absolute() and path.is_dir():
        return path
    inside = root / str(path).lstrip("/")
    if ".." in inside.parts:
        raise ConfigError(f"workingDir “{wanted}” must not contain “..”")
    inside.mkdir(parents=True, exist_ok=True)
    return inside


def _memory_limit(container: Object) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return whole(limits["memory"]) if "memory" in limits else 0


def role_of(container: Object, *, init: bool) -> ContainerRole:
    if not init:
        return ContainerRole.MAIN
    return ContainerRole.SIDECAR if container.get("restartPolicy") == "Always" else ContainerRole.INIT
