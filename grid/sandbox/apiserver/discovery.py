"""Discovery: the server's description of itself, in the three formats that clients ask for. It is built from the table of
kinds, and from the groups that other programs serve under this server's address.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grid.sandbox.apiserver.kinds import KINDS, Object, ServedKind, Subresource

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-08-01T00:00:00Z",
    "goVersion": "go1.26.11",
    "compiler": "gc",
    "platform": "linux/amd64",
}
_LAST_GROUP = "metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A version of a group that another program serves, with its resources; None while that program does not answer."""

    group: str
    version: str
    resources: Sequence[Object] | None


def _groups() -> list[str]:
    """Return the named groups in the order of the table; the aggregated one last, as on a real cluster."""
    named = dict.fromkeys(kind.group for kind in KINDS if kind.group)
    return sorted(named, key=lambda group: group == _LAST_GROUP)


def _versions(group: str) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in KINDS if kind.group == group))


def _kinds(group: str, version: str) -> list[ServedKind]:
    kinds = (kind for kind in KINDS if (kind.group, kind.version) == (group, version))
    return sorted(kinds, key=lambda kind: kind.plural)


def api_versions(address: str) -> Object:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(others: Mapping[str, Sequence[str]] | None = None) -> Object:
    """Return the APIGroupList; `others` are the versions of groups that other programs serve."""
    groups = [_group(group, _versions(group)) for group in _groups()]
    groups += [_group(group, versions) for group, versions in (others or {}).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def one_group(group: str, versions: Sequence[str] = ()) -> Object:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions or _versions(group))}


def _group(group: str, versions: Sequence[str]) -> Object:
    named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": named, "preferredVersion": named[0]}


def resource_list(group: str, version: str) -> Object:
    resources: list[Object] = []
    for kind in _kinds(group, version):
        resources.append(_resource(kind))
        resources += [_sub(kind, sub) for sub in sorted(kind.subresources, key=lambda sub: sub.name)]
    group_version = f"{group}/{version}" if group else version
    body: Object = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }
    if not group:
        del body["apiVersion"]  # the oldest answer of Kubernetes never had it
    return body


def _resource(kind: ServedKind) -> Object:
    body: Object = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        body["shortNames"] = list(kind.short)
    if kind.categories:
        body["categories"] = list(kind.categories)
    return body


def _sub(kind: ServedKind, sub: Subresource) -> Object:
    body: Object = {"name": f"{kind.plural}/{sub.name}", "singularName": "", "namespaced": kind.namespaced}
    if sub.group:
        body |= {"group": sub.group, "version": sub.version}
    return {**body, "kind": sub.kind or kind.kind, "verbs": list(sub.verbs)}


def aggregated(groups: Sequence[str] | None = None, *, others: Iterable[ServedVersion] = ()) -> Object:
    """Return all groups with all resources in one answer; `groups` is [""] for the core group."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(kind) for kind in _kinds(group, version)],
                    "freshness": "Current",
                }
                for version in _versions(group)
            ],
        }
        for group in (_groups() if groups is None else groups)
    ]
    by_group: dict[str, list[Object]] = {}
    for served in others:
        by_group.setdefault(served.group, []).append(_served_version(served))
    items += [{"metadata": {"name": group}, "versions": versions} for group, versions in by_group.items()]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _served_version(served: ServedVersion) -> Object:
    resources = [
        {
            "resource": item["name"],
            "responseKind": {"group": "", "version": "", "kind": item.get("kind", "")},
            "scope": "Namespaced" if item.get("namespaced") else "Cluster",
            "singularResource": item.get("singularName", ""),
            "verbs": item.get("verbs") or [],
        }
        for item in served.resources or ()
        if "/" not in item["name"]
    ]
    freshness = "Stale" if served.resources is None else "Current"
    return {"version": served.version, "resources": resources, "freshness": freshness}


def _aggregated_resource(kind: ServedKind) -> Object:
    body: Object = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        body["shortNames"] = list(kind.short)
    if kind.categories:
        body["categories"] = list(kind.categories)
    if kind.subresources:
        body["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {"group": sub.group, "version": sub.version, "kind": sub.kind or kind.kind},
                "verbs": list(sub.verbs),
            }
            for sub in sorted(kind.subresources, key=lambda sub: sub.name)
        ]
    return body
