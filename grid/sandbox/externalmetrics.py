"""Registers a program of this machine as the embedded cluster's external.metrics.k8s.io, as an admin does on another cluster.

What is written is what `deploy/external-metrics.yaml` says there, with this machine's loopback in place of a Service's pods. It is
looked at again now and then, because what registers the program can be deleted, and because its port may be another one after a restart.
"""

import logging

from grid.sandbox.client import SERVICES, Api, ApiError, Clock, Object, Resource, SystemClock

logger = logging.getLogger(__name__)

API_SERVICES = Resource("/apis/apiregistration.k8s.io/v1", "apiservices", "APIService", namespaced=False)
NAMESPACE, SERVICE = "kube-system", "compute-grid-external-metrics"
API_SERVICE = "v1beta1.external.metrics.k8s.io"
_LOOK_SECONDS = 10.0
_RETRY_SECONDS = 1.0


async def keep_registered(api: Api, port: int, *, clock: Clock | None = None) -> None:
    """Until cancelled. The program may come later than this: the APIService is not Available until it answers."""
    clock, told = clock or SystemClock(), ""
    while True:
        problem = ""
        try:
            await _put(api, SERVICES.path(NAMESPACE), SERVICE, _service())
            await _put(api, API_SERVICES.path(), API_SERVICE, _api_service(port))
        except (ApiError, TimeoutError) as error:
            problem = str(error) or "no answer in time"
        if problem and problem != told:
            logger.warning("external metrics are not registered and it is tried again: %s", problem)
        told = problem
        await clock.sleep(_RETRY_SECONDS if problem else _LOOK_SECONDS)


async def _put(api: Api, path: str, name: str, wanted: Object) -> None:
    """Create it, or make its spec what is wanted."""
    try:
        found = await api.get(f"{path}/{name}")
    except ApiError as error:
        if not error.not_found:
            raise
        await api.create(path, wanted)
        return
    if any(found["spec"].get(key) != value for key, value in wanted["spec"].items()):
        await api.patch(f"{path}/{name}", {"spec": wanted["spec"]})


def _service() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _api_service(port: int) -> Object:
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": NAMESPACE, "name": SERVICE, "port": port},
        },
    }
