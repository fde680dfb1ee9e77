"""What a launch takes from the central configuration, read once and frozen into its spec."""

from dataclasses import dataclass

from django.conf import settings

from grid.configuration import (
    FRONT_ENABLED,
    FRONT_MAXIMUM_BODY,
    HOME_VOLUME_SIZE,
    REPOSITORY_SIZE,
    RESULTS_SIZE,
    values_of,
)
from grid.executions.front import AuthProxySpec, IngressSpec, front_port
from grid.executions.token import workspace_origins
from grid.models import Execution


@dataclass(frozen=True, slots=True)
class LaunchSettings:
    """The size of home volumes that are made now, whether new programs with a web page have a front, and the bounds of a project's
    repository and of a job's results in it."""

    home_gibibytes: int = HOME_VOLUME_SIZE.default
    has_front: bool = bool(FRONT_ENABLED.default)
    body_mebibytes: int = FRONT_MAXIMUM_BODY.default
    repository_gibibytes: int = REPOSITORY_SIZE.default
    results_mebibytes: int = RESULTS_SIZE.default

    def front_of(self, execution: Execution, port: int) -> AuthProxySpec | None:
        """Return the front of an execution's web server on that port; None without a web server (0) or an image, and where fronts are
        off."""
        if not (self.has_front and settings.FRONT_IMAGE and port):
            return None
        page = f"{settings.DASHBOARD_ORIGIN}/executions/{execution.pk}/"
        return self._front(port, page, _ingress_to(execution))

    def any_front(self) -> AuthProxySpec | None:
        """Return a front as programs with a web page are launched with now, for what it takes; None where there is none."""
        return self._front(0, "") if self.has_front and settings.FRONT_IMAGE else None

    def _front(self, port: int, page: str, ingress: IngressSpec | None = None) -> AuthProxySpec:
        return AuthProxySpec(
            image=settings.FRONT_IMAGE,
            port=front_port(port),
            cores=settings.FRONT_CORES,
            memory=settings.FRONT_MEMORY,
            body_mebibytes=self.body_mebibytes,
            page=page,
            ingress=ingress,
        )


def _ingress_to(execution: Execution) -> IngressSpec | None:
    """Return the ingress that leads straight to the execution; None where requests come through our proxy: without a setting or host names
    of their own, and where service workers are allowed, whose scripts the proxy makes harmless."""
    if not settings.INGRESS_CLASS or settings.WORKSPACE_PATHS or execution.environment.allows_service_workers:
        return None
    return IngressSpec(
        class_name=settings.INGRESS_CLASS,
        tls_secret=settings.INGRESS_TLS_SECRET,
        origin=workspace_origins().origin(execution.pk),
        proxy=settings.INGRESS_PROXY,
    )


def launch_settings() -> LaunchSettings:
    """Return the values now in force, with one query."""
    home, front, *bounds = values_of(HOME_VOLUME_SIZE, FRONT_ENABLED, FRONT_MAXIMUM_BODY, REPOSITORY_SIZE, RESULTS_SIZE)
    return LaunchSettings(home, bool(front), *bounds)
