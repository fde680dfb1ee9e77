"""The demo data is valid, complete, and made once."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, transaction
from pytest_django.fixtures import Settings

from grid.management.demo import DemoAccount, create_demo_data, new_accounts
from grid.models import Environment, Framework, HardwareTier, Project, User
from grid.sandbox.images import ImageCatalogue


@pytest.fixture
def accounts(db: None) -> list[DemoAccount]:
    accounts = new_accounts()
    create_demo_data(accounts)
    return accounts


@pytest.fixture
def environments(accounts: list[DemoAccount]) -> list[Environment]:
    return list(Environment.objects.order_by("kind"))


def test_demo_data_is_valid_and_has_its_images(environments: list[Environment]) -> None:
    assert {environment.kind for environment in environments} == {"workspace", "job", "cluster"}
    assert {environment.image for environment in environments} <= set(ImageCatalogue().names())
    for thing in [*HardwareTier.objects.all(), *environments, *Project.objects.all()]:
        thing.full_clean()


def test_demo_editor_keeps_workspace_trust_enabled(environments: list[Environment]) -> None:
    commands = [environment.command for environment in environments if "code-server" in environment.command]
    assert commands
    assert not any("--disable-workspace-trust" in command for command in commands)


@pytest.mark.parametrize("framework", Framework.values)
def test_demo_framework_environments_share_the_version_in_images(
    environments: list[Environment], framework: str
) -> None:
    serving = [environment for environment in environments if framework in environment.frameworks]
    assert [environment.kind for environment in serving] == ["cluster", "job", "workspace"]
    (version,) = {environment.frameworks[framework] for environment in serving}
    (image,) = {ImageCatalogue().find(environment.image) for environment in serving}
    assert image is not None and any(f"=={version}" in requirement for requirement in image.requirements)


def test_a_second_start_changes_nothing(accounts: list[DemoAccount]) -> None:
    assert User.objects.count() == len(accounts) == 4
    assert new_accounts() == []


def test_failed_start_leaves_no_accounts_without_passwords(db: None) -> None:
    HardwareTier.objects.create(id="small", name="In the way", node_pool="default", cores="1", memory="1Gi")
    with pytest.raises(IntegrityError), transaction.atomic():
        create_demo_data(new_accounts())
    assert not User.objects.exists()


def test_each_account_has_a_password_of_its_own(accounts: list[DemoAccount]) -> None:
    assert len({account.password for account in accounts}) == 4
    assert all(User.objects.get(username=a.username).check_password(a.password) for a in accounts)


@pytest.mark.parametrize(("is_demo", "debugs"), [(True, False), (False, True)], ids=["demo", "debugging"])
def test_it_is_not_served_beyond_this_machine(settings: Settings, is_demo: bool, debugs: bool) -> None:
    settings.DEMO, settings.DEBUG = is_demo, debugs
    with pytest.raises(CommandError, match="loopback addresses only"):
        call_command("web", host="0.0.0.0")


def test_all_in_one_command_runs_only_in_demo_mode(settings: Settings) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="make run"):
        call_command("up")
