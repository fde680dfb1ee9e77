"""Settings: each is declared once, and in words: sections, switches, what is searched for, and changes before they are saved."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string

from dashboard.configuration.setting_effects import Consequence
from dashboard.configuration.viewmodel import (
    SettingFilter,
    SettingRow,
    SettingSection,
    Typed,
    review_lines,
    saved_sentence,
    setting_sections,
)
from grid.configuration import (
    CLUSTER_SETTINGS,
    FRAMEWORK_SETTINGS,
    GLOBAL_QUEUE_LIMIT,
    MAXIMUM_EXECUTIONS_PER_USER,
    REGISTRY,
    Setting,
    SettingTopic,
    general,
    lifetimes,
    plan,
    store,
    value_of,
    values_with,
)
from grid.configuration.setting import ValueRange
from grid.models import AuditEntry, ConfigRecord
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

DRAIN, DASK_DRAIN = CLUSTER_SETTINGS["drain_seconds"], FRAMEWORK_SETTINGS["dask"]["drain_seconds"]
SWITCH = CLUSTER_SETTINGS["autoscaling"]
RAY_SWITCH, DASK_SWITCH = (FRAMEWORK_SETTINGS[name]["autoscaling"] for name in ("ray", "dask"))
SHOWN = {
    setting.key for setting in (DRAIN, DASK_DRAIN, SWITCH, DASK_SWITCH, MAXIMUM_EXECUTIONS_PER_USER, GLOBAL_QUEUE_LIMIT)
}
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "configuration.md"
TABLE = re.compile(r"(<!-- settings: (.+) -->\n)(?:\|.*\n)*")
BREAK = Setting(
    topic=SettingTopic("com.cerebro.computegrid.breaks", "Breaks"),
    name="coffeeMinutes",
    title="Coffee break",
    range=ValueRange(15, "minutes", minimum=0, maximum=60),
    meaning="How long a break is.",
    effect="Applies to the next break.",
)


def sections(
    stored: dict[str, str] | None = None, typed: Typed | None = None, shown: SettingFilter | None = None
) -> dict[str, SettingSection]:
    stored = stored or {}
    records = {key: ConfigRecord(value=text, updated_by="ada", updated_at=MOMENT) for key, text in stored.items()}
    made = setting_sections(REGISTRY.values(), values_with(stored), records, typed or Typed(), shown or SettingFilter())
    return {section.title: section for section in made}


def row(setting: Setting, shown: dict[str, SettingSection]) -> SettingRow:
    (row,) = [row for section in shown.values() for row in section.rows if row.setting.key == setting.key]
    return row


def test_setting_sections_cover_the_registry_exactly() -> None:
    shown = sections()
    assert len(shown) == len({setting.topic for setting in REGISTRY.values()})
    assert sorted(row.setting.key for group in shown.values() for row in group.rows) == sorted(REGISTRY)


def test_section_opens_when_setting_is_set_wrong_or_searched() -> None:
    own = sections({DASK_DRAIN.key: "20"})
    section = own["Dask clusters, where they differ"]
    assert (section.is_open, section.changed, section.note) == (True, 1, "1 of 14 differ from all frameworks.")
    assert (row(DASK_DRAIN, own).value, row(DASK_DRAIN, own).back) == ("20", "Use the value for all frameworks")

    wrong = sections(typed=Typed({DASK_DRAIN.key: "soon"}, {DASK_DRAIN.key: ("No.",)}))
    assert wrong["Dask clusters, where they differ"].is_open
    assert row(DASK_DRAIN, wrong).errors == ("No. In force is 60 seconds (1 min).",)
    typed = sections(typed=Typed({DASK_DRAIN.key: "30"}))
    assert typed["Dask clusters, where they differ"].is_open and not typed["Ray clusters, where they differ"].is_open
    assert (row(DASK_DRAIN, typed).value, row(DASK_DRAIN, typed).is_typed) == ("30", True)
    assert sections(shown=SettingFilter("drain"))["Spark clusters, where they differ"].is_open


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        ("LIMIT beyond", {"Queue limit"}),
        ("globalExecutionQueueLimit", {"Queue limit"}),
        ("slots queue  beyond", {"Queue limit"}),
        ("home volumes", {"Size of a home volume"}),
        ("nothing like this", set()),
    ],
)
def test_search_matches_words_in_section_title_meaning_or_key(words: str, titles: set[str]) -> None:
    searched = sections(shown=SettingFilter(words))
    shown = {row.setting.title for section in searched.values() for row in section.rows if row.is_shown}
    assert shown == titles
    assert {section.is_shown for section in searched.values()} == ({True, False} if titles else {False})


def test_a_review_marks_what_applies_without_an_override() -> None:
    stored = {GLOBAL_QUEUE_LIMIT.key: "500"}
    changes = plan({GLOBAL_QUEUE_LIMIT.key: "", DRAIN.key: "90", DASK_DRAIN.key: "60", SWITCH.key: "off"}, stored)
    lines = review_lines(changes, {change.setting.key: Consequence("So.") for change in changes})
    assert [
        (line.text, line.old, line.change.stored is None, line.new, line.change.wanted is None) for line in lines
    ] == [
        ("", "500 executions", False, "1000 executions", True),
        ("off", "on", True, "off", False),
        ("90", "60 seconds (1 min)", True, "90 seconds", False),
        ("60", "60 seconds (1 min)", True, "60 seconds (1 min)", False),
    ]
    assert [line.default_word for line in lines] == ["default"] * 3 + ["as for all frameworks"]


def test_saved_sentence_names_one_setting_or_counts_several() -> None:
    def sentence(wanted: dict[str, str], stored: dict[str, str] | None = None) -> str:
        return saved_sentence(plan(wanted, stored or {}))

    assert sentence({DRAIN.key: "90"}) == "Drain time is now 90 seconds; it is in force already."
    assert sentence({DRAIN.key: ""}, {DRAIN.key: "90"}) == "Drain time is back to the default of 60 seconds (1 min)."
    assert (
        sentence({RAY_SWITCH.key: ""}, {RAY_SWITCH.key: "0"})
        == "Autoscaling of Ray clusters is as for all frameworks, on."
    )
    assert sentence({DRAIN.key: "90", SWITCH.key: "off"}) == "2 settings changed; they are in force already."


@pytest.mark.parametrize(
    ("name", "title"),
    [("plain", "Slots and queue"), ("switch", "Clusters"), ("framework", "Dask clusters, where they differ")],
)
def test_each_state_of_a_setting_looks_as_stored(name: str, title: str) -> None:
    stored = {GLOBAL_QUEUE_LIMIT.key: "500", SWITCH.key: "0", DASK_DRAIN.key: "20"}
    typed = Typed({DRAIN.key: "90", DASK_SWITCH.key: "perhaps"}, {DASK_SWITCH.key: ("No.",)})
    shown = sections(stored, typed, SettingFilter("queue" if name == "plain" else "drain"))
    section = replace(
        shown[title], rows=tuple(setting_row for setting_row in shown[title].rows if setting_row.setting.key in SHOWN)
    )
    html = render_to_string(
        "configuration/fragments/settings.html", {"section": section, "wrong": [row(DASK_SWITCH, shown)]}
    )
    assert_golden(f"settings-{name}", html)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setattr(general, "BREAK", BREAK, raising=False)
    for key, setting in store.declared_settings().items():
        monkeypatch.setitem(store._SETTINGS, key, setting)
    return BREAK


def document(text: str) -> str:
    """Return the text of the document with its tables as they have to be."""
    settings = [setting for setting in REGISTRY.values() if not setting.general]
    named = {topic for table in TABLE.finditer(text) for topic in table[2].split()}

    def table(match: re.Match[str]) -> str:
        topics = match[2].split()
        rows = (s for s in settings if s.topic.name in topics or ("others" in topics and s.topic.name not in named))
        return match[1] + "| key | default | meaning |\n|---|---|---|\n" + "".join(map(document_row, rows))

    return TABLE.sub(table, text)


def document_row(setting: Setting) -> str:
    default = f"{setting.written(setting.default)} {setting.range.unit}".strip()
    return f"| `{setting.key}` | {default} | *{setting.title}*: {setting.meaning} |\n"


def test_documentation_has_every_setting_as_declared() -> None:
    text = DOCUMENT.read_text()
    if os.environ.get("GRID_GOLDEN") == "write":
        DOCUMENT.write_text(document(text))
    assert DOCUMENT.read_text() == document(text), "write the tables anew with GRID_GOLDEN=write"


def test_declared_setting_is_shown_reviewed_saved_and_in_force(admin: Any, declared: Setting) -> None:
    page = admin.get("/configuration/").content.decode()
    assert "<h2" in page and "Breaks" in page and f'name="{declared.key}"' in page and "How long a break is." in page
    form = {"base": "{}", declared.key: "20"}
    review = admin.post("/configuration/", form).content.decode()
    assert "Coffee break" in review and "Applies to the next break." in review
    admin.post("/configuration/", {**form, "do": "save"})
    assert value_of(declared) == 20
    assert AuditEntry.objects.get(object_id=declared.key).object_name == "Coffee break"


def test_each_setting_is_read_somewhere() -> None:
    product = [path for tree in ("grid", "dashboard") for path in (ROOT / tree).rglob("*.py")]
    readers = [path for path in product if "configuration" not in path.relative_to(ROOT).parts]
    words = {word for path in readers for word in re.findall(r"\b[A-Z][A-Z_]+\b", path.read_text())}
    named = {
        name for module in (general, lifetimes) for name, value in vars(module).items() if isinstance(value, Setting)
    }
    assert len(named) > 30
    assert named - words == set(), "nothing outside of the rooms `configuration` reads these settings"
