"""Slim views of what limits a namespace: its ResourceQuotas and LimitRanges."""

from typing import Any

from grid.kube.objects import Metadata
from grid.kube.slim import Slim


class QuotaSpec(Slim, frozen=True, kw_only=True):
    scopes: tuple[str, ...] = ()
    scope_selector: dict[str, Any] | None = None


class QuotaStatus(Slim, frozen=True, kw_only=True):
    """`hard` and `used` by the quota's own names of resources, such as requests.cpu and count/pods."""

    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class LimitItem(Slim, frozen=True, kw_only=True):
    """Bounds for each object of one type: Container, Pod or PersistentVolumeClaim."""

    type: str = ""
    max: dict[str, str] = {}
    min: dict[str, str] = {}
    default: dict[str, str] = {}
    default_request: dict[str, str] = {}
    max_limit_request_ratio: dict[str, str] = {}


class LimitRangeSpec(Slim, frozen=True, kw_only=True):
    limits: tuple[LimitItem, ...] = ()


class LimitRange(Slim, frozen=True, kw_only=True):
    metadata: Metadata
    spec: LimitRangeSpec = LimitRangeSpec()
