"""A setting is declared once: its page, its review and its row in docs/configuration.md follow.

`GRID_GOLDEN=write` writes the tables of the document anew. A comment before each table names its topics; `others` are those that no other
table has. What stands between the tables is written by hand and kept.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from grid.configuration import REGISTRY, Setting, SettingTopic, general, lifetimes, store, value_of
from grid.configuration.setting import ValueRange
from grid.models import AuditEntry

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
        return match[1] + "| key | default | meaning |\n|---|---|---|\n" + "".join(map(row, rows))

    return TABLE.sub(table, text)


def row(setting: Setting) -> str:
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
