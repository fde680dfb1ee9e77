"""The data plane that each database has, and that nothing starts beside a second one."""

from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.models import QuerySet

from grid import proxy_asgi
from grid.dataplanes import UnsupportedDataPlanes, api_of, data_planes
from grid.models import DataPlane
from grid.models.dataplane import LOCAL
from grid.runtime import start_runtime, stop_runtime
from tests.support.database import ON_SQLITE, database_on_file

REFUSAL = (
    "A second data plane is not supported yet, and the database has “west” beside “local”. Remove it from the table grid_dataplane, "
    "with the tiers and executions that point to it, and start again."
)


@pytest.mark.django_db
def test_migrated_database_has_the_data_plane_of_this_cluster() -> None:
    assert list(DataPlane.objects.values_list("id", "name")) == [(LOCAL, "This cluster")]
    assert data_planes() == [LOCAL]


@pytest.mark.django_db(transaction=True)
def test_a_flushed_database_has_it_again() -> None:
    DataPlane.objects.create(id="west", name="West")
    call_command("flush", interactive=False, verbosity=0)
    assert data_planes() == [LOCAL]


@pytest.mark.django_db(transaction=True)
def test_another_migration_leaves_its_name_as_it_is() -> None:
    DataPlane.objects.update(name="Berlin")
    call_command("migrate", verbosity=0)
    assert DataPlane.objects.get().name == "Berlin"


@pytest.mark.django_db
def test_second_data_plane_is_refused_with_the_remedy() -> None:
    DataPlane.objects.create(id="west", name="West")
    with pytest.raises(UnsupportedDataPlanes) as refused:
        data_planes()
    assert str(refused.value) == REFUSAL


@pytest.mark.django_db
def test_data_plane_is_assumed_before_its_first_row() -> None:
    DataPlane.objects.all().delete()
    assert data_planes() == [LOCAL]


@pytest.mark.django_db
def test_data_plane_is_assumed_while_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise OperationalError("could not connect to server")

    monkeypatch.setattr(QuerySet, "exclude", away)
    assert data_planes() == [LOCAL]


def test_unreachable_data_plane_gets_no_client() -> None:
    with pytest.raises(UnsupportedDataPlanes, match="No setting says how to reach the data plane “west”"):
        api_of("west")


@pytest.mark.parametrize("start", [start_runtime, proxy_asgi.start])
@pytest.mark.django_db(transaction=True)
async def test_neither_pages_nor_the_proxy_start_with_two(start: Any) -> None:
    await sync_to_async(DataPlane.objects.create)(id="west", name="West")
    try:
        with pytest.raises(UnsupportedDataPlanes):
            await start()
    finally:
        await stop_runtime()
        await proxy_asgi.stop()


@ON_SQLITE
@pytest.mark.parametrize("command", ["controller", "web", "proxy"])
@pytest.mark.django_db(transaction=True)
def test_no_command_starts_with_two(command: str, tmp_path: Path) -> None:
    DataPlane.objects.create(id="west", name="West")
    with database_on_file(tmp_path / "grid.sqlite3"), pytest.raises(CommandError) as refused:
        call_command(command)
    assert str(refused.value) == REFUSAL
