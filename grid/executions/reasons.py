"""What an execution does, waits for, and why it ended, in words; what is quoted from Kubernetes or from a diagnosis is text."""

from collections.abc import Mapping
from datetime import timedelta

from grid.core.reasons import Reader, Sentence, Values, cause_words, filled
from grid.core.translation import gettext as _
from grid.core.wording import again, duration
from grid.diagnosis.refusals import explain_refusal
from grid.executions import stopping
from grid.models.environment import Kind

_WHY_STOPPED = {
    stopping.LEFT_PROJECT: _("its owner has left the project"),
    stopping.ONLY_VIEWS: _("its owner is only a viewer of the project now"),
    stopping.ACCOUNT_CLOSED: _("its owner's account was closed"),
    stopping.BUDGET_USED_UP: _("the budget of its project is used up"),
    stopping.REPLACED: _("the next run of its schedule replaces it"),
    stopping.IDLE: _("nobody used it for too long"),
    stopping.LIFETIME: _("its maximum lifetime is over"),
    stopping.RESTART: _("it is restarted"),
}
# By the value `of`: the whole of it, or the part of a cluster that was waited for.
_DEPLOYING_TIMEOUT = {
    "": _("No node took it within {limit}. Last known: {why}"),
    "head": _("No node took the head within {limit}. Last known: {why}"),
}
_PREPARING_TIMEOUT = {
    "": _("Not ready within {limit}. Last known: {why}"),
    "head": _("The head was not ready within {limit}. Last known: {why}"),
    "worker": _("The head is ready, but no worker was within {limit}. Last known: {why}"),
}


def _requested(values: Values, reader: Reader) -> str:
    slots = values.get("slots")
    return _("Waiting for {slots} free slots.", slots=slots) if slots else _("Waiting for a free slot.")


def _by_kind(of_cluster: str, of_other: str) -> Sentence:
    def sentence(values: Values, reader: Reader) -> str:
        return (of_cluster if values["kind"] == Kind.CLUSTER else of_other).format(**values)

    return sentence


def _not_created(values: Values, reader: Reader) -> str:
    known = explain_refusal(values["error"])
    if known is None:
        return _("The cluster rejected it: {error}", error=values["error"])
    return f"{known.sentence} {known.next_step}"


def _of_cluster(values: Values, reader: Reader) -> str:
    return cause_words({"cause": values["cluster"]}, reader)


_AWAITS_CLUSTER = filled(
    _("Waiting for its cluster; it starts by itself when the cluster runs. The cluster: {message}"), message=_of_cluster
)


def _awaits_cluster(values: Values, reader: Reader) -> str:
    if values["cluster"] is None:
        return _("Waiting for its cluster's address; it starts by itself.")
    return _AWAITS_CLUSTER(values, reader)


def _pod_deleted(values: Values, reader: Reader) -> str:
    because, then = f" ({values['cause']})" if values["cause"] else "", again(values["kind"])
    return _("Its pod was deleted{because}. The project's files are kept; {again}.", because=because, again=then)


def _timeout(sentences: Mapping[str, str]) -> Sentence:
    def sentence(values: Values, reader: Reader) -> str:
        return sentences[values["of"]].format(
            limit=duration(timedelta(seconds=values["seconds"])), why=values["last_known"]
        )

    return sentence


def _stop(values: Values, reader: Reader) -> str:
    """Word a stop: when it is asked for, and at its end. Nobody needs to be told why a person stops something."""
    by, step, parent = values["by"], values["step"], values["with"]
    why = _(", because {why}", why=_WHY_STOPPED[values["why"]]) if values["why"] else ""
    whole = Kind(parent).label.lower() if parent else ""
    if step == "queued" and parent:
        sentence = _("Stopped with the {kind} that it belongs to, by {by}, before it started{because}.")
        return sentence.format(kind=whole, by=by, because=why)
    if step == "queued":
        return _("Stopped by {by} before it started{because}.", by=by, because=why)
    if step == "ended":
        stopped = _("Stopped with its {kind}{because}.") if parent else _("Stopped by {by}{because}.")
        sentence = stopped.format(kind=whole, by=by, because=why)
        return _("{sentence} The project's files are kept.", sentence=sentence)
    if parent:
        return _("Its {kind} ends, and it ends with it.", kind=whole)
    if values["kind"] == Kind.CLUSTER:
        return _("{by} requested the stop{because}; head and workers are ended.", by=by, because=why)
    return _("{by} requested the stop{because}; the program is given time to close its files.", by=by, because=why)


SENTENCES: dict[str, Sentence] = {
    "requested": _requested,
    "created": _by_kind(
        _("Its objects are created; looking for nodes."), _("Its objects are created; looking for a node.")
    ),
    "scheduled": _by_kind(
        _("Node {node} is preparing the head: image, start."), _("Node {node} is preparing it: volumes, image, start.")
    ),
    "awaits_cluster": _awaits_cluster,
    "cluster_failed": filled(
        _("It was not started, because its cluster did not come up. The cluster: {message} Launch both again."),
        message=_of_cluster,
    ),
    "not_created": _not_created,
    "ran": filled(_("It ran.")),
    "pod_gone": lambda values, reader: _(
        "Its pod is gone: its node was removed, somebody deleted it, or the cluster was restored from a backup. "
        "The project's files are kept; {again}.",
        again=again(values["kind"]),
    ),
    "pod_deleted": _pod_deleted,
    "deploying_timeout": _timeout(_DEPLOYING_TIMEOUT),
    "preparing_timeout": _timeout(_PREPARING_TIMEOUT),
    **dict.fromkeys((stopping.REQUESTED, stopping.STOPPED, *_WHY_STOPPED), _stop),
    "WithoutCluster": filled(_("{by} stopped its cluster before it started; this continues without a cluster.")),
}
