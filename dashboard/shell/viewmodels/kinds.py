"""Kinds of execution, frameworks of clusters and roles of people, in words."""

from grid.core.translation import gettext as _

KINDS = {"workspace": _("Workspace"), "job": _("Job"), "app": _("App"), "cluster": _("Cluster")}
ROLE_TITLES = {
    "practitioner": _("Practitioner"),
    "auditor": _("Auditor"),
    "operator": _("Operator"),
    "admin": _("Admin"),
}


def framework_name(framework: str) -> str:
    """Return how its makers write its name: "Dask"."""
    return framework.capitalize()


def kind_name(kind: str) -> str:
    """Return the kind in words; one that is not known as it is."""
    return KINDS.get(kind, kind)
