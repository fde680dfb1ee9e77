"""A text comes from the catalogue of the installation's language, with its fields filled, and from the code where there is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grid.core.translation import gettext, ngettext
from grid.core.wording import plural
from tests.support import pseudolanguage

SAYS = """
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
waiting, nodes = ngettext("{count} pod waits", "{count} pods wait", 3), plural(1200, "node", "nodes")
print(_("The pod {pod} ended.", pod="{x}"), _("Braces {stay}"), waiting, nodes, _("Unknown"), sep="|")
"""
CATALOGUE = """
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "The pod {pod} ended."
msgstr "{pod} hat geendet."

msgid "{count} pod waits"
msgid_plural "{count} pods wait"
msgstr[0] "{count} Pod wartet"
msgstr[1] "{count} Pods warten"

msgid "node"
msgid_plural "nodes"
msgstr[0] "Knoten"
msgstr[1] "Knoten"
"""


def test_english_is_in_the_code() -> None:
    assert gettext("The pod {pod} ended.", pod="a{b}") == "The pod a{b} ended."
    assert gettext("100 % of {nothing}") == "100 % of {nothing}"
    assert ngettext("{count} of {total} runs.", "{count} of {total} run.", 1, total=3) == "1 of 3 runs."
    assert plural(1500, "node", "nodes") == "1,500 nodes"


def test_another_language_comes_from_its_catalogue(tmp_path: Path) -> None:
    if not pseudolanguage.can_be_made():
        pytest.skip(pseudolanguage.MISSING)
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    subprocess.run(["msgfmt", "-o", folder / "django.mo", "-"], input=CATALOGUE, text=True, check=True)
    environment = {**os.environ, "GRID_LANGUAGE": "de", "GRID_LOCALE": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", SAYS], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "{x} hat geendet.|Braces {stay}|3 Pods warten|1,200 Knoten|Unknown"
