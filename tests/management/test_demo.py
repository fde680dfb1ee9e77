"""The demo data is valid, complete, and made once."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, transaction
from pytest_django.fixtures import Settings

from grid.management.demo import create_demo_data, new_accounts
from grid.models import Environment, Framework, HardwareTier, Project, User
from grid.sandbox.images import ImageCatalogue


def test_everything_in_the_demo_data_passes_its_own_validation(db: None) -> None:
    create_demo_data(new_accounts())
    things = [*HardwareTier.objects.all(), *Environment.objects.all(), *Project.objects.all()]
    assert {environment.kind for environment in Environment.objects.all()} == {"workspace", "job", "cluster"}
    for thing in things:
        thing.full_clean()


def test_demo_images_are_in_the_embedded_catalogue(db: None) -> None:
    create_demo_data(new_accounts())
    assert {environment.image for environment in Environment.objects.all()} <= set(ImageCatalogue().names())


def test_demo_editor_keeps_workspace_trust_enabled(db: None) -> None:
    create_demo_data(new_accounts())
    commands = [one.command for one in Environment.objects.all() if "code-server" in one.command]
    assert commands
    assert not any("--disable-workspace-trust" in command for command in commands)


@pytest.mark.parametrize("framework", Framework.values)
def test_demo_framework_environments_share_the_version_in_images(db: None, framework: str) -> None:
    create_demo_data(new_accounts())
    serving = [one for one in Environment.objects.order_by("kind") if framework in one.frameworks]
    assert [one.kind for one in serving] == ["cluster", "job", "workspace"]
    (version,) = {one.frameworks[framework] for one in serving}
    (image,) = {ImageCatalogue().find(one.image) for one in serving}
    assert image is not None and any(f"=={version}" in requirement for requirement in image.requirements)


def test_a_second_start_changes_nothing(db: None) -> None:
    accounts = new_accounts()
    create_demo_data(accounts)
    assert User.objects.count() == len(accounts) == 4
    assert new_accounts() == []


def test_failed_start_leaves_no_accounts_without_passwords(db: None) -> None:
    HardwareTier.objects.create(id="small", name="In the way", node_pool="default", cores="1", memory="1Gi")
    with pytest.raises(IntegrityError), transaction.atomic():
        create_demo_data(new_accounts())
    assert not User.objects.exists()


def test_each_account_has_a_password_of_its_own(db: None) -> None:
    accounts = new_accounts()
    create_demo_data(accounts)
    assert len({account.password for account in accounts}) == 4
    assert all(User.objects.get(username=a.username).check_password(a.password) for a in accounts)


def test_demo_mode_is_not_served_beyond_this_machine(settings: Settings) -> None:
    settings.DEMO = True
    with pytest.raises(CommandError, match="loopback addresses only"):
        call_command("web", host="0.0.0.0")


def test_debugging_is_not_served_beyond_this_machine(settings: Settings) -> None:
    settings.DEMO, settings.DEBUG = False, True
    with pytest.raises(CommandError, match="loopback addresses only"):
        call_command("web", host="0.0.0.0")


def test_all_in_one_command_runs_only_in_demo_mode(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="make run"):
        call_command("up")
