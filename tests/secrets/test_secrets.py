"""The pages of secrets: setting and deleting them, and that no page ever shows a value."""

from collections.abc import Mapping
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from grid.database.encryption import decrypt
from grid.models import AuditEntry, Project, StoredSecret, User
from tests.conftest import People
from tests.executions.launching import offer_clusters, page

VALUE = "correct horse battery staple"


@pytest.fixture
def client(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


def sent(client: Client, address: str, values: Mapping[str, Any]) -> str:
    answer = client.post(address, values, follow=True)
    text = answer.content.decode()
    assert VALUE not in text, "a value is on a page"
    return f"{answer.status_code} {text}"


def test_secret_is_stored_encrypted_and_page_hides_it(client: Client, alice: User, project: Project) -> None:
    page = sent(client, reverse("secrets"), {"name": "DB_PASSWORD", "value": VALUE, "project": "churn"})
    assert "DB_PASSWORD is stored." in page and "Churn &lt;b&gt;" in page
    secret = StoredSecret.objects.get()
    assert (secret.owner, secret.project) == (alice, project)
    assert VALUE not in secret.ciphertext and decrypt(secret.ciphertext) == VALUE
    assert not AuditEntry.objects.filter(changes__icontains=VALUE).exists()


def test_a_refused_value_is_not_sent_back(client: Client) -> None:
    page = sent(client, reverse("secrets"), {"name": "1 wrong", "value": VALUE})
    assert page.startswith("422") and "begin with a letter" in page
    assert not StoredSecret.objects.exists()


def test_secret_value_can_be_an_unchanged_file(client: Client) -> None:
    key = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n"
    file = SimpleUploadedFile("key.pem", key.encode())
    sent(client, reverse("secrets"), {"name": "key.pem", "is_file": "on", "file": file})
    assert decrypt(StoredSecret.objects.get().ciphertext) == key
    sent(client, reverse("secrets"), {"name": "TYPED", "value": key.replace("\n", "\r\n")})
    assert decrypt(StoredSecret.objects.get(name="TYPED").ciphertext) == key


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"value": "a\0b"}, "Null characters are not allowed"),
        ({"file": SimpleUploadedFile("x", b"\xff\xfe")}, "This file is not text"),
        ({"file": SimpleUploadedFile("x", b"y" * 17_000)}, "this file has 17,000 bytes"),
        ({"value": "v", "file": SimpleUploadedFile("x", b"y")}, "not both"),
        ({"value": "v", "project": "theirs"}, "Choose one of your projects"),
        ({"value": "v", "name": "A" * 101}, "at most 100 characters"),
    ],
)
def test_invalid_secret_is_reported_at_its_field(client: Client, values: dict[str, Any], sentence: str) -> None:
    page = sent(client, reverse("secrets"), {"name": "KEY", **values})
    assert page.startswith("422") and sentence in page


@pytest.mark.usefixtures("runtime")
def test_the_launch_form_names_what_the_launch_gets(people: People) -> None:
    project = offer_clusters(people)
    StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    StoredSecret.objects.create(name="OWN_KEY", owner=people.owner, ciphertext="x")
    StoredSecret.objects.create(name="THEIR_KEY", owner=people.teammate, ciphertext="x")
    form = page(people.owner, "?kind=workspace")
    assert "OWN_KEY, TEAM_KEY" in form and "THEIR_KEY" not in form


def test_project_secret_is_listed_only_on_project_page(client: Client, project: Project) -> None:
    StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    assert "TEAM_KEY" in client.get(reverse("project-secrets", args=["churn"])).content.decode()
    assert "TEAM_KEY" not in client.get(reverse("secrets")).content.decode()


def test_deleted_secret_stays_for_active_executions_with_notice(client: Client, project: Project) -> None:
    secret = StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    page = sent(client, reverse("project-secret-delete", args=["churn", secret.pk]), {})
    assert "TEAM_KEY was deleted. Active executions keep it until they end." in page
    assert not StoredSecret.objects.exists()
