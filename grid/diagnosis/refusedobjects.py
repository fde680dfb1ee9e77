"""Explains refusals for what is missing beside the object, for rights, and for an API server that is busy; pure.

The texts are those of Kubernetes' plugin/pkg/admission: priority, serviceaccount, runtimeclass, podnodeselector, podtolerationrestriction,
gc, noderestriction; of apiserver's plugin/namespace/lifecycle and endpoints/handlers/responsewriters; and of etcd.
"""

from grid.core.regexes import Match
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, folded
from grid.diagnosis.diagnosis import ASK_ADMIN, TRIED_AGAIN, RefusalReason

_APPLY_AGAIN = _("Ask an admin of the cluster to apply deploy/access.yaml again.")
_STARTS_WITH_IT = _("It starts when an admin of the cluster creates it.")
# 429; Priority and Fairness answers it without a Status, so there may be no words to search.
THROTTLED = RefusalReason(
    "throttled", _("The cluster's API server has too many requests."), _("It is tried again by itself."), for_good=False
)


def no_priority_class(match: Match) -> RefusalReason:
    sentence = _("The cluster has no priority class “{name}”.", name=match[1])
    return RefusalReason("missing", sentence, _STARTS_WITH_IT, for_good=False)


def no_service_account(match: Match) -> RefusalReason:
    """The cluster's own controller creates the account `default`, a moment after the namespace."""
    sentence = _("The namespace {namespace} has no service account “{name}”.", namespace=match[1], name=match[2])
    step = TRIED_AGAIN if match[2] == "default" else _STARTS_WITH_IT
    return RefusalReason("missing", sentence, step, for_good=False)


def no_runtime_class(match: Match) -> RefusalReason:
    sentence = _("The cluster has no runtime class “{name}”.", name=match[1])
    return RefusalReason("missing", sentence, _STARTS_WITH_IT, for_good=False)


def no_namespace(match: Match) -> RefusalReason:
    return RefusalReason(
        "missing", _("The namespace {name} does not exist.", name=match[1]), TRIED_AGAIN, for_good=False
    )


def unknown_kind(match: Match) -> RefusalReason:
    sentence = _("The cluster does not know objects of this kind.")
    step = _("Ask an admin of the cluster: its Kubernetes is too old, or an extension is missing.")
    return RefusalReason("unknown_kind", sentence, step, for_good=False)


def namespace_ends(match: Match) -> RefusalReason:
    return RefusalReason("namespace", _("The namespace {name} is being deleted.", name=match[1]), ASK_ADMIN)


def other_nodes(match: Match) -> RefusalReason:
    sentence = _("The namespace allows other nodes than those of the tier: {why}", why=as_sentence(folded(match[1])))
    return RefusalReason(
        "node_rule", sentence, _("Choose a tier of another node pool, or ask an admin of the cluster.")
    )


def pod_security(match: Match) -> RefusalReason:
    sentence = _(
        "Pod security of the namespace ({level}) forbids it: {violations}",
        level=match[1],
        violations=as_sentence(folded(match[2])),
    )
    return RefusalReason("pod_security", sentence, ASK_ADMIN)


def no_context_constraint(match: Match) -> RefusalReason:
    """OpenShift's own admission (apiserver-library-go, securitycontextconstraints/sccadmission)."""
    sentence = _("No security context constraint of OpenShift allows it: {why}", why=as_sentence(folded(match[1])))
    step = _("Ask an admin of the cluster for a constraint that allows the pods of executions.")
    return RefusalReason("pod_security", sentence, step)


def rights(match: Match) -> RefusalReason:
    where = _("in the cluster") if match[3] else _("in the namespace")
    sentence = _("Compute Grid may not {verb} {resource} {where}.", verb=match[1], resource=match[2], where=where)
    return RefusalReason("rights", sentence, _APPLY_AGAIN)


def owner_rights(match: Match) -> RefusalReason:
    sentence = _(
        "Compute Grid may not say which object owns it: the cluster (OwnerReferencesPermissionEnforcement) wants the right to delete "
        "it and to set finalizers of its owner."
    )
    return RefusalReason("rights", sentence, _APPLY_AGAIN)


def node_rights(match: Match) -> RefusalReason:
    sentence = _("Compute Grid uses the credentials of the node {name}, which may not do this.", name=match[1])
    step = _("Ask an admin to give Compute Grid the service account of deploy/access.yaml.")
    return RefusalReason("rights", sentence, step)


def starting(match: Match) -> RefusalReason:
    return RefusalReason("busy", _("The cluster's API server is still starting."), TRIED_AGAIN, for_good=False)


def throttled(match: Match) -> RefusalReason:
    return THROTTLED


def database_full(match: Match) -> RefusalReason:
    sentence = _("The cluster's own database (etcd) is full, so it stores nothing new.")
    step = _("It is tried again by itself; ask an admin of the cluster to make room in etcd.")
    return RefusalReason("busy", sentence, step, for_good=False)


def database_busy(match: Match) -> RefusalReason:
    sentence = _("The cluster's own database (etcd) did not take it: {why}", why=as_sentence(folded(match[1])))
    return RefusalReason("busy", sentence, TRIED_AGAIN, for_good=False)
