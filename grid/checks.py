"""System checks: errors in an installation's settings, with a hint that says what to change."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder

from grid.core.egress import read_blocks, read_egress
from grid.core.origins import is_address, is_protected, shared_domain
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import FOLDER, has_catalogue
from grid.database.encryption import is_encrypted_with
from grid.edge.connections import matcher
from grid.models import PlatformReport, RemoteRepository, StoredSecret, WebhookTarget

_LEAST_KEY = 32
_BUILDERS = ("buildkit", "buildah")  # of grid.environments.buildjobs
_AFTER_HOST = RepeatedExpression(r"[/?#]")
_SERVICE = Expression(r"[a-z0-9-]+\.[a-z0-9-]+:[1-9][0-9]{0,4}")
_HOST_AND_PORT = Expression(r"([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?):[1-9][0-9]{0,4}")
_LONGEST_REPOSITORY = 120
_REPOSITORY = Expression(r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+/?")
# The first migration of versions whose databases cannot be migrated.
_FORMER_BEGINNING = ("grid", "0001_initial")
_BEGINNING, _LATEST_TABLE = ("grid", "0001_foundation"), "grid_dataplane"

OURS = "compute_grid"  # the tag of these checks: Django's own load every page, which the proxy must not


@register(Tags.database)
def former_databases(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse a database of an earlier version, which would pass for an empty one, or for ours. `migrate` runs this check."""
    return [
        Error(
            f"The database {connections[alias].settings_dict['NAME']} was created by an earlier version of Compute Grid, "
            f"whose tables this one cannot use. Nothing was changed.",
            hint="docs/repair.md says how to start afresh and keep people's files.",
            id="grid.E030",
        )
        for alias in databases or ()
        if _is_former(connections[alias])
    ]


def _is_former(connection: BaseDatabaseWrapper) -> bool:
    applied = MigrationRecorder(connection).applied_migrations()
    if _FORMER_BEGINNING in applied:
        return True
    # Older states of this migration, from before its first release, lack the table.
    return _BEGINNING in applied and _LATEST_TABLE not in connection.introspection.table_names()


@register(OURS)
def origins(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Report a dashboard and workspaces that share an origin (an error), or a host name or a domain (a warning)."""
    dashboard, workspaces = urlsplit(settings.DASHBOARD_ORIGIN), urlsplit(settings.WORKSPACE_ORIGIN)
    if dashboard[:2] == workspaces[:2]:
        sentence = "The dashboard and the workspaces have the same origin, so user code could act as the dashboard."
        return [Error(sentence, hint="Give GRID_WORKSPACE_ORIGIN a host name of its own.", id="grid.E001")]
    messages = _kept_apart(dashboard, workspaces)
    unprotected = [origin.geturl() for origin in (dashboard, workspaces) if not is_protected(origin)]
    if unprotected:
        messages.append(
            Warning(
                f"Passwords and sessions travel in the open to {' and '.join(unprotected)}, and browsers keep no __Host- "
                "cookies there, so a program on a host name of the same domain can exchange a visitor's session for its own.",
                hint="Serve https, and say so in GRID_DASHBOARD_ORIGIN and GRID_WORKSPACE_ORIGIN.",
                id="grid.W003",
            )
        )
    if settings.WORKSPACE_PATHS:
        messages.append(
            Warning(
                "All executions share one origin (GRID_WORKSPACE_PATHS): what one serves reads the pages, files and terminals "
                "of every other that the same person opens, also those of projects that its author does not see.",
                hint="Give the workspaces a wildcard host name and certificate, and leave GRID_WORKSPACE_PATHS out.",
                id="grid.W002",
            )
        )
    elif is_address(workspaces.hostname or ""):
        sentence = (
            f"Each execution is served at a name below {workspaces.hostname}, and there is none below an address."
        )
        hint = "Give GRID_WORKSPACE_ORIGIN a host name; http://localhost:8001 does on one machine."
        messages.append(Error(sentence, hint=hint, id="grid.E002"))
    return messages


def _kept_apart(dashboard: SplitResult, workspaces: SplitResult) -> list[CheckMessage]:
    if dashboard.hostname == workspaces.hostname:
        sentence = "The dashboard and the workspaces differ only by port, and browsers share cookies between ports."
        return [Warning(sentence, hint="Give GRID_WORKSPACE_ORIGIN a host name of its own.", id="grid.W001")]
    shared = shared_domain(dashboard.hostname or "", workspaces.hostname or "")
    if not shared:
        return []
    return [
        Info(
            f"The dashboard and the workspaces are both below {shared}, so browsers take them for one site: user code can set "
            "cookies for the dashboard, though not replace those of its sessions (__Host-), and SameSite keeps nothing apart.",
            hint="Where you can, give GRID_WORKSPACE_ORIGIN a host name of another registered domain.",
            id="grid.I001",
        )
    ]


def _split(address: str) -> SplitResult:
    """Return the parts of an address; one that is none, or has an impossible port, has no parts."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return urlsplit("")
    return parts


@register(OURS)
def encryption_keys(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse keys that can be guessed: whoever has a copy of the database can try as many as there is time for."""
    # Django says itself when the secret key, which is the only one by default, is too short.
    if all(len(key) >= _LEAST_KEY for key in settings.ENCRYPTION_KEYS if key != settings.SECRET_KEY):
        return []
    sentence = f"A key in GRID_ENCRYPTION_KEYS is shorter than {_LEAST_KEY} characters."
    return [Error(sentence, hint="Make one with: openssl rand -hex 32", id="grid.E031")]


@register(Tags.database)
def stored_secrets(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Report that a stored secret cannot be read with the keys of the settings, and which key is missing. `migrate` runs this check.

    It is the one whose value is oldest that is tried, and one of a webhook: a key that was left out is an old one.
    """
    tried = [stored for alias in databases or () for stored in _oldest(alias)]
    keys = settings.ENCRYPTION_KEYS
    return [_unreadable(name, text) for name, text in tried if not any(is_encrypted_with(key, text) for key in keys)]


def _oldest(alias: str) -> Iterator[tuple[str, str]]:
    """Yield the names and ciphertexts of what is tried of a database."""
    present = connections[alias].introspection.table_names()
    if StoredSecret._meta.db_table in present:
        for secret in StoredSecret.objects.using(alias).order_by("changed_at")[:1]:
            yield str(secret), secret.ciphertext
    if WebhookTarget._meta.db_table in present:
        for target in WebhookTarget.objects.using(alias).order_by("pk")[:1]:
            yield f"of the {target}", target.secret
    if RemoteRepository._meta.db_table in present:
        for remote in RemoteRepository.objects.using(alias).order_by("changed_at")[:1]:
            yield f"of the remote repository {remote}", remote.ciphertext


def _unreadable(name: str, ciphertext: str) -> CheckMessage:
    """Return a warning and no error: the database is to be migrated all the same."""
    if is_encrypted_with(settings.SECRET_KEY, ciphertext):
        return Warning(
            f"The stored secret {name} cannot be read: it was encrypted with GRID_SECRET_KEY, which is not among GRID_ENCRYPTION_KEYS.",
            hint="Append the value of GRID_SECRET_KEY to GRID_ENCRYPTION_KEYS, restart, and run manage.py encrypt_again.",
            id="grid.W032",
        )
    return Warning(
        f"The stored secret {name} cannot be read: neither GRID_ENCRYPTION_KEYS nor GRID_SECRET_KEY has its key, which is an earlier "
        "value of one of the two.",
        hint="Append that value to GRID_ENCRYPTION_KEYS, restart, and run manage.py encrypt_again.",
        id="grid.W033",
    )


@register(OURS)
def egress(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse egress rules that cannot be meant, before anything is opened by them."""
    _, mistakes = read_egress(settings.EGRESS, settings.STORAGE_EGRESS, settings.EGRESS_EXCEPT)
    hint = "docs/installation.md says what these settings may be. Until it is corrected, no controller starts."
    return [Error(mistake, hint=hint, id="grid.E003") for mistake in mistakes]


@register(OURS)
def notifications(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse what cannot be meant of the mail server and of webhooks; nothing would be sent, and nobody would know."""
    messages: list[CheckMessage] = [
        Error(mistake, hint=f"docs/{page}.md says what this setting may be.", id="grid.E040")
        for page, setting, blocks in (
            ("installation", "GRID_GIT_PRIVATE", settings.GIT_PRIVATE),
            ("notifications", "GRID_WEBHOOK_PRIVATE", settings.WEBHOOK_PRIVATE),
        )
        for mistake in read_blocks(setting, blocks)[1]
    ]
    if settings.EMAIL_TLS not in ("starttls", "tls", "none"):
        sentence = f"GRID_EMAIL_TLS is “{settings.EMAIL_TLS}”."
        messages.append(Error(sentence, hint="Use starttls, tls or none.", id="grid.E041"))
    if settings.EMAIL_HOST and not settings.DEFAULT_FROM_EMAIL:
        sentence = "GRID_EMAIL_HOST names a mail server, and GRID_EMAIL_FROM no sender, so no e-mail is sent."
        messages.append(Error(sentence, hint="Set GRID_EMAIL_FROM to an address of yours.", id="grid.E042"))
    return messages


@register(OURS)
def logs(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a format of the log that there is not: whatever collects it would understand no line."""
    if settings.LOG_FORMAT in ("text", "json"):
        return []
    return [Error(f"GRID_LOG_FORMAT is “{settings.LOG_FORMAT}”.", hint="Use text or json.", id="grid.E061")]


@register(OURS)
def builds(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a builder of images that cannot be meant; revisions of requirements would be refused, and nobody would know why. Refuse
    credentials in the index's address too, which everybody with the image could read."""
    messages: list[CheckMessage] = []
    if "@" in _AFTER_HOST.split(settings.PACKAGE_INDEX.partition("://")[2])[0]:
        sentence = "GRID_PACKAGE_INDEX has a user name or password, which each image that is built would contain."
        advice = "Remove what stands before the “@”: name an index that the builders may read without credentials."
        messages.append(Error(sentence, hint=advice, id="grid.E052"))
    hint = "docs/environments.md says what the settings of the builder may be."
    if settings.BUILDER and settings.BUILDER not in _BUILDERS:
        sentence = f"GRID_BUILDER is “{settings.BUILDER}”, which is none of {' and '.join(_BUILDERS)}."
        messages.append(Error(sentence, hint=hint, id="grid.E050"))
    elif settings.BUILDER and not (
        len(settings.BUILD_REPOSITORY) <= _LONGEST_REPOSITORY and _REPOSITORY.fullmatch(settings.BUILD_REPOSITORY)
    ):
        sentence = f"GRID_BUILD_REPOSITORY is “{settings.BUILD_REPOSITORY}”, which no image can be pushed to."
        messages.append(
            Error(sentence, hint="Name a registry with a folder: registry.example.com/grid.", id="grid.E051")
        )
    return messages


@register(OURS)
def trusted_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a proxy that is no network: uvicorn would take it for the name of a socket, and then believe nobody."""
    try:
        matcher(settings.TRUSTED_PROXIES)
    except ValueError as error:
        sentence = f"GRID_TRUSTED_PROXIES is no list of addresses and networks: {error}."
        return [Error(sentence, hint="Write them like 10.1.0.0/16,10.2.0.7 and name no host names.", id="grid.E020")]
    return []


@register(OURS)
def language(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a language without a catalogue: all would stay in English without a word."""
    if settings.LANGUAGE_CODE == "en" or has_catalogue():
        return []
    sentence = f"GRID_LANGUAGE is “{settings.LANGUAGE_CODE}”, and {FOLDER} has no compiled catalogue of it."
    return [Error(sentence, hint="Leave it unset for English, or see docs/translating.md.", id="grid.E080")]


@register(OURS)
def demand_service(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a malformed name: the certificate of the external metrics is made for it."""
    if _SERVICE.fullmatch(settings.DEMAND_SERVICE):
        return []
    sentence = f"GRID_DEMAND_SERVICE does not name a Service and its port: {settings.DEMAND_SERVICE}"
    hint = "Write it as NAME.NAMESPACE:PORT, like demand.compute-grid-system:443."
    return [Error(sentence, hint=hint, id="grid.E025")]


@register(OURS)
def ingress(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse an ingress that would lead nowhere; each workspace would fail, or go through the proxy without a word."""
    if not settings.INGRESS_CLASS:
        return []
    messages: list[CheckMessage] = []
    named = _HOST_AND_PORT.fullmatch(settings.INGRESS_PROXY)
    if named is None or named[1].rpartition(".")[2].isdigit():
        sentence = f"GRID_INGRESS_PROXY does not name a host and its port: {settings.INGRESS_PROXY}"
        hint = "Write it like proxy.compute-grid-system.svc.cluster.local:80, by a name and no address."
        messages.append(Error(sentence, hint=hint, id="grid.E043"))
    if not settings.FRONT_IMAGE or settings.WORKSPACE_PATHS:
        sentence = "GRID_INGRESS_CLASS is set, but requests still go through the proxy."
        hint = "It needs GRID_FRONT_IMAGE, and a host name for each execution (not GRID_WORKSPACE_PATHS)."
        messages.append(Warning(sentence, hint=hint, id="grid.W044"))
    return messages


@register(OURS)
def log_receiver(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a log receiver that gets nothing; warn of a credential that others can read."""
    messages: list[CheckMessage] = []
    address, link = settings.LOG_RECEIVER_URL, settings.LOG_LINK
    url = _split(address)
    is_address = url.scheme in ("http", "https") and url.hostname and not url.query and not url.fragment
    if address and not is_address:
        sentence = "GRID_LOG_RECEIVER_URL is no address, so executions' logs go nowhere."
        hint = "Set it to an address such as http://collector.monitoring:4318."
        messages.append(Error(sentence, hint=hint, id="grid.E070"))
    elif url.username or url.password:
        sentence = "GRID_LOG_RECEIVER_URL has a password in it, which is shown where addresses are."
        hint = "Give the credential in GRID_LOG_RECEIVER_AUTHORIZATION, as “Basic ...” or “Bearer ...”."
        messages.append(Error(sentence, hint=hint, id="grid.E071"))
    elif address and settings.LOG_RECEIVER_AUTHORIZATION and not is_protected(url):
        sentence = f"The credential for the log receiver travels in the open to {url.hostname}."
        messages.append(Warning(sentence, hint="Let GRID_LOG_RECEIVER_URL begin with https.", id="grid.W072"))
    if link and (_split(link).scheme not in ("http", "https") or "{execution}" not in link):
        sentence = "GRID_LOG_LINK does not lead to one execution's lines."
        hint = "Write {execution} in the place of its id, in an address that begins with https."
        messages.append(Error(sentence, hint=hint, id="grid.E073"))
    return messages


@register(Tags.database)
def versions(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn of APIs that the cluster lacks, as the controller found it last. Nothing is known before migrations and its first look."""
    if "default" not in (databases or ()):
        return []
    try:
        stored = list(PlatformReport.objects.values_list("versions", flat=True))
    except DatabaseError:
        return []
    return [
        Warning(f"{line['subject']}: {line['sentence']}", hint="docs/platform-health.md says more.", id="grid.W060")
        for lines in stored
        for line in lines
        if line["severity"] == "problem"
    ]
