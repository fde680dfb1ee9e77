"""Explains why an image cannot be pulled or inspected, from the messages of containerd, cri-o and the kubelet."""

from collections.abc import Sequence

from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.diagnosis.beside import is_about
from grid.diagnosis.diagnosis import Diagnosis, Who, latest, quoted
from grid.diagnosis.nodefaults import LOOK_AT_NODE
from grid.diagnosis.rules import RuleTable, core_words
from grid.kube.objects import ContainerStatus, Event

_INSPECTED = "ImageInspectError"  # before any pull: whether the image is on the node already cannot be told
PULL_FAILED = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", _INSPECTED, "RegistryUnavailable",
    "SignatureValidationFailed",
})  # fmt: skip
_DETAILS = ("Failed to pull image", "Failed to inspect image", "Failed to apply default image tag")
_ADDRESSES = RepeatedExpression(r"https?://[^\s\"]+|sha256:[0-9a-f]+")
_SECRETS = Expression(r"image pull secrets \(([^)]+)\)")
_CHECK_IMAGE = _("Ask your admin to correct the environment's image.")
_REACH = _("It is tried again by itself; if it lasts, ask an operator whether the nodes reach the registry.")
# The cause in words, who can act, and how, of the message in lower case; what names its cause exactly comes before what merely mentions it.
PULL_FAILURES = RuleTable[tuple[str, Who, str]](
    ("platform", r"no match for platform|no image found in (image index|manifest list) for architecture|exec format error",
     (_("there is no build of it for the node's architecture"), "admin",
     _("Ask your admin for an image that has one, or choose a tier with other nodes."))),
    # RFC 9110, 15.5.8: 407 is the word of the node's own proxy, whatever the registry would say.
    ("proxy-login", r"proxy authentication required|\b407\b", (_("the node's HTTP proxy asks for a login"), "operator",
     _("Ask an operator to give the node's container runtime a login for the proxy."))),
    ("proxy", r"proxyconnect ", (_("the node cannot reach its HTTP proxy"), "operator",
     _("Ask an operator to check the proxy that the node's container runtime uses."))),
    ("rate-limit", r"toomanyrequests|\b429\b|too many requests|pull rate limit", (_("the registry's rate limit is reached"),
     "admin", _("It is tried again by itself; if it lasts, ask your admin for an image pull secret or a mirror."))),
    ("old-format", r"manifest\.v1\+prettyjws|no longer supported since containerd", (
     _("the node no longer reads its format (Docker schema 1)"), "admin", _("Ask your admin to build the image and push it again."))),
    ("web-page", r"text/html", (_("a web page answers in place of the registry, as of a proxy or a login"), "operator",
     _("Ask an operator whether a proxy answers for the registry, or your admin to check the registry's name."))),
    ("vulnerable", r"projectpolicyviolation|due to configured policy|precondition failed", (
     _("a policy of the registry keeps it back, as for known vulnerabilities"), "admin",
     _("Ask your admin for a repaired build of it, or for an exception in the registry."))),
    ("disk-full", r"no space left on device|disk quota exceeded",
     (_("the node's disk is full"), "operator", _("Ask an operator to free disk space on the node."))),
    ("node-service", r"dial unix ", (_("a service of the node that the download needs does not answer"), "operator", LOOK_AT_NODE)),
    ("layers", r"failed open: failed to do request.*(dial tcp|timeout|deadline|connection)", (
     _("the node does not reach the store of the registry's layers"), "operator",
     _("Ask an operator whether the nodes reach the host in the messages, which is often an object storage."))),
    ("host-name", r"dial tcp: lookup |no such host|server misbehaving|temporary failure in name resolution|name or service not known",
     (_("the node cannot resolve the registry's host name"), "admin",
     _("Ask your admin to check the registry's name in the environment's image, or an operator to check the node's DNS."))),
    ("timed-out", r"i/o timeout|deadline exceeded|handshake timeout|connection timed out|awaiting headers",
     (_("the registry does not answer in time"), "operator", _REACH)),
    ("broken-off", r"short read|(?:failed to copy|extract).*(?:unexpected eof|connection reset)",
     (_("its download breaks off before the end"), "operator", _REACH)),
    ("connection", r"connection refused|no route to host|network is unreachable|connection reset|unexpected eof",
     (_("the node cannot connect to the registry"), "operator", _REACH)),
    ("plain-http", r"server gave http response to https client", (_("the registry speaks plain HTTP, which the node does not accept"),
     "operator", _("Ask an operator to give the registry a certificate, or to allow plain HTTP on the nodes."))),
    ("certificate-of-another-host", r"certificate is (not )?valid for|not valid for any names|doesn't contain any ip sans",
     (_("the registry's TLS certificate is for another host name"), "admin",
     _("Ask your admin to check the registry's name in the environment's image, or an operator for a certificate with that name."))),
    ("certificate-too-early", r"certificate has expired or is not yet valid: current time \S+ is before",
     (_("the registry's TLS certificate is not valid yet by the node's clock"), "operator",
     _("Ask an operator to check the node's clock and the registry's certificate."))),
    ("certificate-expired", r"certificate has expired or is not yet valid: current time \S+ is after",
     (_("the registry's TLS certificate has expired"), "operator", _("Ask an operator to renew the registry's certificate."))),
    ("certificate-out-of-time", r"certificate has expired", (_("the registry's TLS certificate has expired or is not valid yet"),
     "operator", _("Ask an operator to check the registry's certificate and the node's clock."))),
    ("certificate-untrusted", r"x509:|tls:|certificate", (_("the node does not trust the registry's TLS certificate"),
     "operator", _("Ask an operator to install the registry's certificate authority on the nodes."))),
    ("node-refused", r"permission \S?artifactregistry\.|not authorized to perform: ecr|client with ip .* is not allowed", (
     _("the registry does not admit the node, by its account or its address"), "operator",
     _("Ask an operator to admit the nodes' account or address in the registry."))),
    ("access", r"unauthorized|forbidden|denied|authentication required|no basic auth credentials|insufficient_scope|\b40[13]\b",
     # Registries say the same of an image that does not exist: who may not read it is not told.
     (_("the registry refuses access, or there is no such image"), "admin",
     _("Ask your admin to check the environment's image pull secret and the image's name."))),
    ("never-pulled", r"not present with pull policy of never",
     (_("it is not on the node, and its pull policy forbids to pull it"), "admin", _CHECK_IMAGE)),
    ("signature", r"signature ?validation ?failed", (_("its signature is missing or not valid"), "admin", _CHECK_IMAGE)),
    ("invalid-name", r"invalid reference|parse image name", (_("its name is not valid"), "admin", _CHECK_IMAGE)),
    ("no-such-image", r"not found|does not exist|manifest unknown|name unknown|is not in the catalogue|\b404\b",
     (_("there is no such image"), "admin", _CHECK_IMAGE)),
    ("pull-qps", r"pull qps exceeded", (_("the node limits its pulls"), "operator", _("It is tried again by itself."))),
    ("registry-error", r"\b50[0-9]\b", (_("the registry answers with an error of its own"), "operator", _REACH)),
)  # fmt: skip
_OTHER: tuple[str, Who, str] = "{says}", "admin", _("Ask your admin to check the environment's image and its registry.")


def explain_pull(image: str, status: ContainerStatus, events: Sequence[Event]) -> Diagnosis:
    """Explain a container whose image cannot be pulled; `events` are the pod's, oldest first."""
    waiting = status.state.waiting
    failed = _detail(status, events)
    message = waiting.message if waiting else ""
    if waiting is not None and waiting.reason == _INSPECTED:
        sentence = _("The node's container runtime cannot inspect the image {image}.", image=image)
        step = _("Ask an operator to look at the node's container runtime and its disk.")
        return Diagnosis("image", sentence, "problem", "operator", step, quoted(message, failed))
    text = _without_names(f"{waiting.reason if waiting else ''}: {message} {failed}", image)
    evidence: tuple[str, ...] = message, failed
    key, (cause, who, step) = (PULL_FAILURES.find(text) or ("", _OTHER))[:2]
    says = next(filter(None, map(core_words, (failed, message))), "")  # what no rule knows is quoted
    cause = cause.replace("{says}", says)
    without = latest(events, "FailedToRetrieveImagePullSecret")
    if without is not None and key in ("access", "rate-limit") and (names := _SECRETS.search(without.message)):
        cause = _("{cause}; the pod's image pull secret {names} is missing", cause=cause, names=names[1])
        step = _("Ask your admin to create that image pull secret, or to name another in the environment.")
        evidence = (*evidence, without.message)
    sentence = _("The image {image} cannot be pulled{cause}.", image=image, cause=cause and f": {cause}")
    return Diagnosis("image", sentence, "problem", who, step, quoted(*evidence))


def _detail(status: ContainerStatus, events: Sequence[Event]) -> str:
    """Return the kubelet's event that has the details: the last word of each attempt is "Error: ErrImagePull", which has none."""
    own = [event for event in events if is_about(event, status)]
    detailed = [event for event in own if event.reason != "Failed" or event.message.startswith(_DETAILS)]
    event = latest(detailed, "Failed", "InspectFailed") or latest(own, "Failed", "InspectFailed")
    return event.message if event else ""


def failure_key(message: str, image: str) -> str:
    """Return the key of the rule that the message of a failed pull falls under; "" when none does."""
    rule = PULL_FAILURES.find(_without_names(message, image))
    return rule[0] if rule else ""


def _without_names(message: str, image: str) -> str:
    """Return the message without the image's own name, which may contain any word, and without digests and addresses."""
    return _ADDRESSES.sub("", message.replace(image, "") if image else message).lower()
