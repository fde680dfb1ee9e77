"""What keeps a pod off the nodes, as a small table with who can act and the page of the next step; pure."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow

_LASTING = {
    "always": ("problem", _("Always")),
    "for_now": ("wait", _("For now")),
    "decision": ("neutral", _("By decision")),
}
_WHO = {
    "": _("Nobody has to do anything."),
    "you": _("You can change this."),
    "admin": _("Your admin can change this."),
    "operator": _("An operator can change this."),
}


@dataclass(frozen=True, slots=True)
class NodeReason:
    """One row; `names` are some of its nodes, of which `more` are not named."""

    evidence: EvidenceRow
    names: str
    more: int
    severity: str
    lasting: str


@dataclass(frozen=True, slots=True)
class NodeReasons:
    rows: tuple[NodeReason, ...]
    who: str
    is_normal: bool | None
    link: str
    link_word: str


def node_reasons(diagnosis: Diagnosis | None, *, sees_all: bool, project: str = "") -> NodeReasons | None:
    """Return the table and the next step's page, if any; to nodes only for who `sees_all`, and to the `project` that the reader may see."""
    if diagnosis is None or diagnosis.severity == "ok":
        return None
    link, word = _link(diagnosis.link, sees_all, project)
    if not diagnosis.table and not link:
        return None
    rows = tuple(
        NodeReason(row, ", ".join(row.names), max(0, row.nodes - len(row.names)), *_LASTING[row.lasting])
        for row in diagnosis.table
    )
    return NodeReasons(rows, _WHO[diagnosis.who], diagnosis.is_normal, link, word)


def _link(target: str, sees_all: bool, project: str) -> tuple[str, str]:
    """Return the address and its words; ("", "") for a page that the reader may not see."""
    kind, _unused, name = target.partition(":")
    if kind in ("tiers", "launch"):
        return "/launch/", _("Choose another tier")
    if kind == "executions":
        return "/executions/", _("Running executions")
    if kind == "project" and project:
        return f"/projects/{quote(project, safe='')}/", _("The project")
    if kind == "infrastructure" and sees_all:
        query = "?" + urlencode({"pool": name}) if name else ""
        return f"/infrastructure/{query}", _("Nodes of {name}", name=name) if name else _("All nodes")
    if kind == "node" and sees_all:
        return f"/nodes/{quote(name, safe='')}/", _("Node {name}", name=name)
    return "", ""
