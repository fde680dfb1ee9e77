"""The central configuration's page: groups, switches, and what a framework has for itself."""

from typing import Any

from django.test import Client

from dashboard.viewmodels.settings import SettingGroup, SettingRow, Typed, in_force, setting_groups
from grid import centralconfig
from grid.centralconfig import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, REGISTRY, Setting
from grid.models import ConfigRecord

NOTHING = Typed("", "", ())
DRAIN, DASK_DRAIN = CLUSTER_SETTINGS["drain_seconds"], FRAMEWORK_SETTINGS["dask"]["drain_seconds"]
SWITCH, RAY_SWITCH = CLUSTER_SETTINGS["autoscaling"], FRAMEWORK_SETTINGS["ray"]["autoscaling"]
DEFAULTS = {key: setting.default for key, setting in REGISTRY.items()}


def groups(
    values: dict[str, int] | None = None, records: dict[str, ConfigRecord] | None = None, typed: Typed = NOTHING
) -> dict[str, SettingGroup]:
    found = setting_groups(REGISTRY.values(), DEFAULTS | (values or {}), records or {}, typed)
    return {group.title: group for group in found}


def row(setting: Setting, found: dict[str, SettingGroup]) -> SettingRow:
    (one,) = [one for group in found.values() for one in group.rows if one.key == setting.key]
    return one


def test_every_setting_is_in_one_group_and_none_is_left_over() -> None:
    found = groups()
    assert list(found) == [
        "Time limits of executions",
        "Slots and queue",
        "Homes of people",
        "Nodes and the autoscaler",
        "Sessions of the dashboard",
        "Logins",
        "What is kept, and for how long",
        "Clusters",
        "Dask clusters, where they differ",
        "Ray clusters, where they differ",
        "Spark clusters, where they differ",
    ]
    assert sorted(one.key for group in found.values() for one in group.rows) == sorted(REGISTRY)


def test_what_is_not_set_for_a_framework_says_what_is_in_force() -> None:
    found = groups({DRAIN.key: 90})
    dask = row(DASK_DRAIN, found)
    assert (dask.value, dask.inherited, dask.set_by) == ("", "as for all frameworks (90)", "")
    assert dask.help == "1 to 3600 (1 h); not set, it is as for all frameworks (90)."
    group = found["Dask clusters, where they differ"]
    assert (group.is_closed, group.is_open, group.note) == (True, False, "All as for all frameworks.")


def test_a_group_opens_when_something_in_it_is_set_or_wrong() -> None:
    own = groups({DASK_DRAIN.key: 20}, {DASK_DRAIN.key: ConfigRecord(updated_by="ada")})
    group = own["Dask clusters, where they differ"]
    assert (group.is_open, group.note) == (True, "1 of 14 differ from all frameworks.")
    assert (row(DASK_DRAIN, own).value, row(DASK_DRAIN, own).back) == ("20", "Do as for all frameworks")

    wrong = groups(typed=Typed(DASK_DRAIN.key, "soon", ("No.",)))
    assert wrong["Dask clusters, where they differ"].is_open
    assert (row(DASK_DRAIN, wrong).value, row(DASK_DRAIN, wrong).errors) == ("soon", ("No.",))


def test_a_switch_is_on_or_off_in_words() -> None:
    found = groups({SWITCH.key: 0})
    assert (row(SWITCH, found).value, row(SWITCH, found).now) == ("off", "off")
    assert row(SWITCH, found).help == "On or off; the default is on."
    assert row(RAY_SWITCH, found).inherited == "as for all frameworks (off)"
    assert [in_force(SWITCH, 1), in_force(DRAIN, 120)] == ["on", "120 seconds (2 min)"]


def test_a_switch_is_turned_and_an_emptied_field_follows_all_frameworks_again(admin: Client) -> None:
    answer = admin.post("/configuration/change/", {"key": RAY_SWITCH.key, "value": "off"}, follow=True)
    assert "Autoscaling of Ray clusters is now off; it is in force already." in answer.content.decode()
    assert not centralconfig.cluster_policy("ray").autoscaling

    answer = admin.post("/configuration/change/", {"key": RAY_SWITCH.key, "value": ""}, follow=True)
    assert "Autoscaling of Ray clusters is as for all frameworks, on." in answer.content.decode()
    assert not ConfigRecord.objects.exists()


def test_an_emptied_field_for_all_frameworks_is_still_wrong(admin: Client) -> None:
    assert admin.post("/configuration/change/", {"key": DRAIN.key, "value": ""}).status_code == 400


def test_a_contradiction_is_said_at_its_field(admin: Client) -> None:
    key = CLUSTER_SETTINGS["maximum_target"].key
    page = admin.post("/configuration/change/", {"key": key, "value": "70"})
    assert page.status_code == 400
    assert "would be 80 percent, and people may choose 20 to 70" in page.content.decode()
    assert not ConfigRecord.objects.exists()


def test_putting_back_what_would_contradict_says_why(admin: Client) -> None:
    lowest, target = (FRAMEWORK_SETTINGS["dask"][name].key for name in ("minimum_target", "target_cpu"))
    admin.post("/configuration/change/", {"key": lowest, "value": "5"})
    admin.post("/configuration/change/", {"key": target, "value": "10"})
    page = admin.post("/configuration/reset/", {"key": lowest}, follow=True).content.decode()
    assert "The target of CPU of Dask clusters would be 10 percent" in page
    assert "value:" not in page


def test_the_page_takes_as_few_queries_as_with_a_handful_of_settings(
    admin: Client, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(10):
        assert admin.get("/configuration/").status_code == 200
