"""What a launch takes from the central configuration, read once and frozen into its spec."""

from dataclasses import dataclass

import msgspec
from django.conf import settings

from grid.configuration import (
    FRONT_ENABLED,
    FRONT_MAXIMUM_BODY,
    HOME_VOLUME_SIZE,
    REPOSITORY_SIZE,
    RESULTS_SIZE,
    values_of,
)
from grid.executions.front import AuthProxySpec, IngressSpec, front_port, workspace_origins
from grid.models import Execution


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """The size of new home volumes, whether new programs have a front, and the bounds of a project's repository and of a job's results."""

    home_gibibytes: int = HOME_VOLUME_SIZE.default
    has_front: bool = bool(FRONT_ENABLED.default)
    body_mebibytes: int = FRONT_MAXIMUM_BODY.default
    repository_gibibytes: int = REPOSITORY_SIZE.default
    results_mebibytes: int = RESULTS_SIZE.default

    def front_of(self, execution: Execution, port: int) -> AuthProxySpec | None:
        """Return the front of an execution's web server on that port; None without a port (0) or an image, and where fronts are off."""
        front = self.any_front(port) if port else None
        page = f"{settings.DASHBOARD_ORIGIN}/executions/{execution.pk}/"
        return front and msgspec.structs.replace(front, page=page, ingress=_ingress_to(execution))

    def any_front(self, port: int = 0) -> AuthProxySpec | None:
        """Return a front as programs with a web page are launched with now, for what it takes; None where there is none."""
        if not (self.has_front and settings.FRONT_IMAGE):
            return None
        image, cores, memory = settings.FRONT_IMAGE, settings.FRONT_CORES, settings.FRONT_MEMORY
        size = self.body_mebibytes
        return AuthProxySpec(image=image, port=front_port(port), cores=cores, memory=memory, body_mebibytes=size)


def _ingress_to(execution: Execution) -> IngressSpec | None:
    """Return the ingress that leads straight to the execution; None where requests come through our proxy: without a setting or host names
    of their own, and where service workers are allowed, whose scripts the proxy makes harmless."""
    if not settings.INGRESS_CLASS or settings.WORKSPACE_PATHS or execution.environment.allows_service_workers:
        return None
    name, secret, origin = settings.INGRESS_CLASS, settings.INGRESS_TLS_SECRET, workspace_origins().origin(execution.pk)
    return IngressSpec(class_name=name, tls_secret=secret, origin=origin, proxy=settings.INGRESS_PROXY)


def launch_settings() -> LaunchSettings:
    """Return the values now in force, with one query."""
    home, front, *bounds = values_of(HOME_VOLUME_SIZE, FRONT_ENABLED, FRONT_MAXIMUM_BODY, REPOSITORY_SIZE, RESULTS_SIZE)
    return LaunchSettings(home, bool(front), *bounds)
