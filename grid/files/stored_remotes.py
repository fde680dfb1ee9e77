"""The remote repositories of projects: who may be one, storing it with its secret, and what executions and connections get of it.

The secret belongs to the URL with which it was typed: another URL needs it again, so that nobody who may change a URL sends somebody else's
token to a server of his own.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from functools import partial

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
from django.conf import settings
from django.db import transaction

from grid.audit.entries import write_entry
from grid.core.egress import may_be_called, read_blocks
from grid.core.errors import Problem, Rejected, rejection
from grid.core.gitnames import COMMIT, MAIN, is_revision
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.database.encryption import Undecryptable, decrypt, encrypt
from grid.executions.launchrequest import LaunchRequest, StoredRows
from grid.executions.spec import ExecutionSpec
from grid.files.remotes import HostKey, Remote, RemoteCredentials, RemoteFailed
from grid.files.remoteurls import RemoteUrl, parse
from grid.files.repositories import Repository
from grid.models import Kind, Project, RemoteRepository, User
from grid.secrets.storedsecrets import SecretMissing, readable

NOT_USABLE = _(
    "The files of this project are in a remote repository that is not set up, or whose server's key nobody has confirmed. Ask the "
    "project's owner."
)
_NOT_READABLE = _(
    "The secret of the project's remote repository can no longer be read. Ask the project's owner to store it again."
)
_USERNAME = "git"  # most servers look at the token alone
_KEY_ON_ONE_LINE = Expression(r"(-----BEGIN [A-Z ]+-----) ([A-Za-z0-9+/= ]+) (-----END [A-Z ]+-----)")
_WRONG_BRANCH = _(
    "Name a branch as Git allows it, such as main or fix/#42: without blanks, and without any of ~ ^ : ? * [ and \\."
)
_LONGEST_SECRET = 16 * 1024


def of_project(project: Project) -> RemoteRepository | None:
    return RemoteRepository.objects.filter(project=project).first()


def is_usable(project: Project) -> bool:
    remote = of_project(project)
    return remote is not None and remote.is_usable


def wrong_files(request: LaunchRequest, stored: StoredRows) -> Iterator[Problem]:
    """Yield a problem when the remote repository of the project cannot be used, which every kind but a cluster begins with."""
    project = stored.project
    is_needed = project is not None and project.files == Project.Files.REMOTE and request.kind != Kind.CLUSTER
    if project is not None and is_needed and not is_usable(project):
        yield Problem("project", NOT_USABLE, "remote")


def put(
    project: Project, *, by: User, url: str, branch: str, username: str, secret: str, now: datetime
) -> RemoteRepository:
    """Store it; without a secret the stored one is kept, and none comes into the audit log. Raise Rejected with all problems."""
    secret = _with_line_breaks(secret.replace("\r\n", "\n").strip())
    with transaction.atomic():
        known = _locked(project)
        try:
            parsed = parse(url)
        except ValueError as error:
            raise rejection(str(error), path="url") from error
        is_same = known is not None and known.url == parsed.text
        branch, username = branch.strip() or MAIN, username.strip()
        if problems := [*_wrong_names(branch, username), *_wrong_secret(parsed, secret, is_needed=not is_same)]:
            raise Rejected(problems)
        remote = known or RemoteRepository(project=project)
        before = remote.url
        if known is not None and (not parsed.is_ssh or parse(known.url).known_host != parsed.known_host):
            remote.host_key = ""
        remote.url, remote.branch = parsed.text, branch
        remote.username = "" if parsed.is_ssh else username or _USERNAME
        remote.changed_at, remote.changed_by = now, by.get_username()
        if secret:
            remote.ciphertext = encrypt(f"{secret}\n" if parsed.is_ssh else secret)
        remote.save()
        after = _("{url}, branch {branch}, a new secret") if secret else _("{url}, branch {branch}")
        write_entry(by, project, {"remote": [before, after.format(url=remote.url, branch=branch)]})
    return remote


def confirm(project: Project, *, by: User, key: str, url: str) -> HostKey:
    """Trust the server's key from now on; `url` is whose it is. Raise Rejected."""
    with transaction.atomic():
        remote = _locked(project)
        if remote is None or remote.url != url or not remote.is_ssh:
            raise rejection(_("The URL was changed in the meantime. Test the connection again."), "changed")
        try:
            new = HostKey.parse(key)
        except ValueError as error:
            raise rejection(_("This is no key of an SSH server. Test the connection again.")) from error
        before = _key_words(remote, HostKey.parse(remote.host_key)) if remote.host_key else ""
        remote.host_key = f"{new.type} {new.text}"
        remote.save(update_fields=["host_key"])
        write_entry(by, project, {"remote": [before, _key_words(remote, new)]})
    return new


def _key_words(remote: RemoteRepository, key: HostKey) -> str:
    return _("{url}, its server's key {fingerprint}", url=remote.url, fingerprint=key.fingerprint)


def remove(project: Project, *, by: User) -> None:
    """Forget it with its secret. Raise Rejected while the project's files are there."""
    with transaction.atomic():
        remote = _locked(project)
        if Project.objects.get(pk=project.pk).files == Project.Files.REMOTE:
            sentence = _("The project's files are there. Choose another place for them first, on the project's page.")
            raise rejection(sentence, "in_use")
        if remote is not None:
            write_entry(by, project, {"remote": [remote.url, ""]})
            remote.delete()


def connection(remote: RemoteRepository) -> Remote:
    """Return the remote repository as this process reaches it. Raise Undecryptable."""
    allowed, denied = read_blocks("", settings.GIT_PRIVATE)[0], read_blocks("", settings.EGRESS_EXCEPT)[0]
    may_reach = partial(may_be_called, allowed=allowed, denied=denied)
    return Remote(parse(remote.url), _credentials(remote), may_reach, settings.GIT_AUTHORITIES)


def push_again(project: Project, repository: Repository, name: str) -> None:
    """Push what an execution could not to a branch named after it. Raise GridError, OSError; then it stays kept. A bundle from the time
    when the project's files were in the repository of this installation may build on what is there."""
    remote = of_project(project)
    if remote is None or not remote.is_usable:
        raise RemoteFailed(_("The remote repository is not set up."))
    connection(remote).push_bundle(repository.kept_bundle(name), name, objects=repository.path / "objects")
    repository.forget_bundle(name)


def files_for(spec: ExecutionSpec) -> Mapping[str, str]:
    """Return what the executor gets, by file. Raise SecretMissing with a sentence for the execution's owner."""
    remote = RemoteRepository.objects.filter(project=spec.project.id).first()
    if spec.files is None or remote is None or remote.url != spec.files.remote or not remote.is_usable:
        raise SecretMissing(_("The project's remote repository was changed after the launch. Launch again."))
    try:
        return _credentials(remote).files()
    except Undecryptable as error:
        raise SecretMissing(_NOT_READABLE) from error


def readable_secrets(projects: Collection[str]) -> list[str]:
    """Return the tokens and keys of these projects' remote repositories, as far as they can be read."""
    return readable(RemoteRepository.objects.filter(project__in=projects).values_list("ciphertext", flat=True))


def _credentials(remote: RemoteRepository) -> RemoteCredentials:
    secret = decrypt(remote.ciphertext)
    if not remote.is_ssh:
        return RemoteCredentials(username=remote.username, token=secret)
    known_hosts = f"{parse(remote.url).known_host} {remote.host_key}\n" if remote.host_key else ""
    return RemoteCredentials(key=secret, known_hosts=known_hosts)


def _locked(project: Project) -> RemoteRepository | None:
    """Have two people who change it at once do so one after the other."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    return of_project(project)


def _wrong_names(branch: str, username: str) -> Iterator[Problem]:
    if not is_revision(branch) or COMMIT.fullmatch(branch):
        yield Problem("branch", _WRONG_BRANCH)
    if len(username) > 100 or not username.isprintable() or " " in username:
        yield Problem("username", _("Use at most 100 characters and no blanks."))


def _wrong_secret(url: RemoteUrl, secret: str, *, is_needed: bool) -> Iterator[Problem]:
    if not secret:
        token, key = _("Enter the token: each URL needs its own."), _("Enter the private key: each URL needs its own.")
        if is_needed:
            yield Problem("secret", key if url.is_ssh else token, "required")
    elif len(secret.encode()) > _LONGEST_SECRET:
        yield Problem("secret", _("A secret has at most 16 KiB."), "too_long")
    elif url.is_ssh:
        yield from _wrong_key(secret)
    elif not (secret.isascii() and secret.isprintable()) or " " in secret:
        yield Problem("secret", _("A token is one line without blanks. For a key, use a URL of SSH."))


def _with_line_breaks(secret: str) -> str:
    """Return a key with the line breaks that its way through a variable or a folded block of YAML made blanks: OpenSSH reads no other."""
    parts = _KEY_ON_ONE_LINE.fullmatch(secret)
    return "\n".join((parts[1], *parts[2].split(), parts[3])) if parts is not None else secret


def _wrong_key(text: str) -> Iterator[Problem]:
    load = load_ssh_private_key if "OPENSSH PRIVATE KEY" in text else load_pem_private_key
    try:
        load(f"{text}\n".encode(), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        sentence = _("This is no private key. It begins with -----BEGIN OPENSSH PRIVATE KEY-----.")
        if isinstance(error, TypeError) or "password" in str(error).lower():
            sentence = _(
                "This key is protected by a passphrase. Make one without, for this repository alone: ssh-keygen -t ed25519 -N ''"
            )
        yield Problem("secret", sentence)
