"""The page of a project's remote repository, and of its files. Who may open them: tests/access; real servers: tests/files."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django.fixtures import Settings

from grid.files import stored_remotes as remotes
from grid.files.remotes import HostKey, HostKeyRefused, Remote, RemoteFailed
from grid.files.repositories import Repositories
from grid.models import AuditEntry, Project, RemoteRepository, RunFiles, State
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.files.test_remotes import HOST_KEY, OTHER_HOST_KEY, TOKEN, URL, private_key

PAGE, PROJECT, FILES = "/projects/churn/remote/", "/projects/churn/settings/", "/projects/churn/files/"


@pytest.fixture
def project(people: People, volume: Path) -> Project:
    return make_project(people.owner, people.teammate)


def sent(client: Client, address: str, values: dict[str, str] | None = None) -> str:
    answer = client.post(address, values or {}, follow=True)
    text = answer.content.decode()
    assert TOKEN not in text, "a secret is on a page"
    return f"{answer.status_code} {text}"


def chosen() -> str:
    return Project.objects.get().files


def answers(monkeypatch: pytest.MonkeyPatch, name: str, answer: Any) -> None:
    def method(self: Remote, *args: Any, **kwargs: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Remote, name, method)


def test_a_repository_is_stored_tested_and_then_chosen(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"name": "Churn", "files": "remote"}
    assert "Set up the remote repository first" in sent(owner, PROJECT, fields)
    page = sent(owner, PAGE, {"url": URL, "branch": "main", "secret": TOKEN})
    assert "The remote repository is stored" in page and URL in page
    answers(monkeypatch, "branches", ["main"])
    assert "it has the branch main" in sent(owner, f"{PAGE}test/")
    answers(monkeypatch, "branches", ["trunk"])
    assert "it has no branch main" in sent(owner, f"{PAGE}test/")
    answers(monkeypatch, "branches", [])
    assert "no branches yet" in sent(owner, f"{PAGE}test/")
    answers(monkeypatch, "branches", RemoteFailed("There is no such host."))
    assert "does not work. There is no such host." in sent(owner, f"{PAGE}test/")
    assert "is saved" in sent(owner, PROJECT, fields)
    assert chosen() == Project.Files.REMOTE


def test_a_refused_form_does_not_send_the_secret_back(owner: Client) -> None:
    assert sent(owner, PAGE, {"url": "file:///etc", "branch": "main", "secret": TOKEN}).startswith("422")
    assert not RemoteRepository.objects.exists()


def test_changed_key_is_shown_with_warning_and_is_confirmable(owner: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, PAGE, {"url": "git@host:a", "branch": "main", "secret": private_key()})
    url = RemoteRepository.objects.get().url
    assert "no key of an SSH server" in sent(owner, f"{PAGE}confirm/", {"key": "x", "url": url})
    assert not RemoteRepository.objects.get().is_usable, "nobody has confirmed it"
    sent(owner, f"{PAGE}confirm/", {"key": HOST_KEY, "url": url})
    answers(monkeypatch, "branches", HostKeyRefused("The server's key is not the confirmed one."))
    old, new = HostKey.parse(HOST_KEY), HostKey.parse(OTHER_HOST_KEY)
    answers(monkeypatch, "host_key", new)
    question = sent(owner, f"{PAGE}test/")
    assert old.fingerprint in question and new.fingerprint in question
    assert "Ask whoever runs the server first" in question and OTHER_HOST_KEY in question
    assert RemoteRepository.objects.get().host_key == HOST_KEY, "nobody has confirmed it"
    assert "is known by" in sent(owner, f"{PAGE}confirm/", {"key": OTHER_HOST_KEY, "url": url})
    assert RemoteRepository.objects.get().host_key == OTHER_HOST_KEY
    assert AuditEntry.objects.filter(changes__icontains=old.fingerprint).count() == 2, "when it came and when it went"
    assert "and now that again" in sent(owner, f"{PAGE}test/")


def test_files_page_says_location_and_links_only_https(owner: Client, people: People, project: Project) -> None:
    Project.objects.update(files=Project.Files.REMOTE)
    assert "It is not set up" in owner.get(FILES).content.decode()
    sent(owner, PAGE, {"url": URL, "branch": "main", "secret": TOKEN})
    page = owner.get(FILES).content.decode()
    assert f'href="{URL}"' in page and "keeps no copy" in page
    assert owner.get(f"{FILES}history/").status_code == 302
    assert owner.get(f"{FILES}download/?path=a").status_code == 404
    sent(owner, PAGE, {"url": "git@host:a", "branch": "main", "secret": private_key()})
    assert 'href="ssh://' not in owner.get(FILES).content.decode()


def test_nobody_uploads_to_a_remote_repository(owner: Client, volume: Path) -> None:
    Project.objects.update(files=Project.Files.REMOTE)
    assert "/files/upload/" not in owner.get(FILES).content.decode()
    assert owner.get(f"{FILES}upload/").status_code == 404
    assert owner.post(f"{FILES}upload/", {"chosen": [SimpleUploadedFile("a", b"1")]}).status_code == 404
    assert not Repositories(volume).of("churn").exists


def test_unpushed_changes_are_kept_until_pushed_to_server(
    owner: Client, people: People, project: Project, volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Project.objects.update(files=Project.Files.REMOTE)
    sent(owner, PAGE, {"url": URL, "branch": "main", "secret": TOKEN})
    execution = make_execution(people.owner, project, kind="job", state=State.SUCCEEDED)
    name = execution.object_name
    RunFiles.objects.create(execution=execution, kept="repository", problem="It could not be pushed")
    bundle = volume / "churn.git" / "unpushed" / f"{name}.bundle"
    bundle.parent.mkdir(parents=True)
    bundle.touch()
    answers(monkeypatch, "push_bundle", RemoteFailed("Access was refused."))
    page = sent(owner, f"{FILES}push-again/", {"name": name})
    assert "they stay kept. Access was refused." in page and bundle.exists()
    assert "could not be pushed now" in sent(owner, f"{FILES}push-again/", {"name": "job-none"})
    answers(monkeypatch, "push_bundle", None)
    assert f"are on branch {name} now" in sent(owner, f"{FILES}push-again/", {"name": name})
    assert not bundle.exists()
    assert RunFiles.objects.get().branch == name


def test_own_processes_reach_no_unallowed_private_address(owner: Client, settings: Settings, project: Project) -> None:
    sent(owner, PAGE, {"url": "https://127.0.0.1:1/a", "branch": "main", "secret": TOKEN})
    assert "private or excepted address" in sent(owner, f"{PAGE}test/")
    settings.GIT_PRIVATE = ["127.0.0.0/8"]
    assert remotes.connection(RemoteRepository.objects.get()).may_reach("127.0.0.1")
    assert not remotes.connection(RemoteRepository.objects.get()).may_reach("169.254.169.254")
