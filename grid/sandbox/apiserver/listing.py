"""LIST: selection, pages and versions. The result is records and list metadata, and their JSON.

A page's continue token holds the version of the first page, and all pages show that version, from history. When the
history is gone the answer is 410 with a token that continues with the present state instead, as Kubernetes gives
it.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from grid.core.decoding import prepared
from grid.sandbox.apiserver.bodies import json_error, parse_int
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.paths import ResourcePath
from grid.sandbox.apiserver.selectors import Predicate, Requirement, exact_name, field_predicate, parse_labels
from grid.sandbox.apiserver.status import (
    bad_request,
    expired,
    invalid_options,
    prohibited,
    too_large_version,
    unsupported,
)
from grid.sandbox.apiserver.store import ObjectStore, Record
from grid.sandbox.apiserver.tables import partial

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided "
    "token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was "
    "returned and now may show up in the list."
)
_LATEST = -1


@dataclass(frozen=True, slots=True)
class ListPage:
    records: list[Record]
    metadata: Object


@dataclass(frozen=True, slots=True)
class Selection:
    """The label selector and the field selector of a request together."""

    labels: Sequence[Requirement]
    fields: Predicate | None

    def takes(self, record: Record) -> bool:
        """Return True when the record matches. The labels are checked first, so that most other objects are never decoded."""
        if not all(requirement.matches(record.labels) for requirement in self.labels):
            return False
        return self.fields is None or self.fields(record.obj)


def selection_of(kind: ServedKind, query: Mapping[str, str]) -> Selection | None:
    """Return the request's selectors, or None when everything is wanted."""
    labels = parse_labels(query.get("labelSelector", ""))
    fields = field_predicate(query.get("fieldSelector", ""), kind)
    return Selection(labels, fields) if labels or fields is not None else None


def list_page(store: ObjectStore, target: ResourcePath, query: Mapping[str, str]) -> ListPage:
    limit = max(parse_int(query.get("limit") or "0"), 0)
    selection = selection_of(target.kind, query)
    token = query.get("continue", "")
    version = _asked_version(store, query, continued=bool(token))
    after = ""
    if token:
        version, after = _read_token(token)
        after = target.prefix + after
    shown = store.version if version in (0, _LATEST) else version
    resource = target.kind.resource
    if not store.can_show(resource, shown):
        if token:
            raise expired(_TOO_OLD, _write_token(_LATEST, after.removeprefix(target.prefix)))
        raise expired("The resourceVersion for the provided list is too old.")
    return _collect(store, target, selection, _Range(shown, after, limit, exact_name(query.get("fieldSelector", ""))))


def encoded(kind: ServedKind, page: ListPage) -> bytes:
    """Return the list as JSON; its items do not repeat the kind."""
    # Every stored object begins with its kind.
    start = len(msgspec.json.encode({"kind": kind.kind, "apiVersion": kind.api_version}))
    items = [b"{" + record.raw[start:] for record in page.records]
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": page.metadata}
    return msgspec.json.encode(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"


def encoded_metadata(page: ListPage) -> bytes:
    """Return the list as JSON, of each object only its metadata; without objects the items are null, as Kubernetes has it."""
    head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata}
    return msgspec.json.encode({**head, "items": [partial(record.obj) for record in page.records] or None})


def item(obj: Object) -> Object:
    """Return the object as an item of a list."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


@dataclass(frozen=True, slots=True)
class _Range:
    version: int
    after: str
    limit: int
    name: str


def _collect(store: ObjectStore, target: ResourcePath, selection: Selection | None, wanted: _Range) -> ListPage:
    resource = target.kind.resource
    metadata: Object = {"resourceVersion": str(wanted.version)}
    if wanted.name and (target.prefix or not target.kind.namespaced) and wanted.version == store.version:
        named = store.get(resource, target.prefix + wanted.name)
        return ListPage([named] if named and (selection is None or selection.takes(named)) else [], metadata)
    if wanted.version == store.version:
        candidates = store.records(resource, prefix=target.prefix, after=wanted.after)
    else:
        candidates = store.records_at(resource, wanted.version, prefix=target.prefix, after=wanted.after)
    records: list[Record] = []
    for record in candidates:
        if selection is not None and not selection.takes(record):
            continue
        if wanted.limit and len(records) == wanted.limit:
            last = records[-1].key
            metadata["continue"] = _write_token(wanted.version, last.removeprefix(target.prefix))
            if selection is None:
                metadata["remainingItemCount"] = store.count(resource, prefix=target.prefix, after=last)
            break
        records.append(record)
    return ListPage(records, metadata)


def _asked_version(store: ObjectStore, query: Mapping[str, str], *, continued: bool) -> int:
    """Return the exact version to show, or 0 for "any". Raise `Failure` for what Kubernetes refuses."""
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    if continued:
        if text not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return 0
    if match and not text:
        problem = prohibited(
            "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
        raise invalid_options("ListOptions", problem)
    if match not in ("", "Exact", "NotOlderThan"):
        problem = unsupported("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))
        raise invalid_options("ListOptions", problem)
    if match == "Exact" and text == "0":
        text_ = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise invalid_options("ListOptions", prohibited("resourceVersionMatch", text_))
    version = parse_version(text)
    if version > store.version:
        raise too_large_version(version, store.version)
    exact = match == "Exact" or (not match and version and query.get("limit", "0") not in ("", "0"))
    return version if exact else 0


def parse_version(text: str) -> int:
    if text and not text.isdigit():
        problem = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"invalid resource version: {problem}")
    return int(text or 0)


def _write_token(version: int, last: str) -> str:
    body = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": version, "start": last + "\u0000"})
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    padded = token + "=" * (-len(token) % 4)
    try:
        body = base64.b64decode(padded, altchars=b"-_", validate=True)
    except ValueError:
        raise bad_request("invalid continue token: continue key is not valid: illegal base64 data") from None
    try:
        content = msgspec.json.decode(body, type=prepared(_Token))
    except msgspec.DecodeError:
        raise bad_request(f"invalid continue token: continue key is not valid: {json_error(body)}") from None
    if content.v != "meta.k8s.io/v1" or content.rv == 0 or content.rv < _LATEST:
        raise bad_request("invalid continue token: continue key is not valid: unrecognized version")
    return content.rv, content.start.rstrip("\u0000")


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""
