"""A language for tests in which each message is the English one with accents on its vowels: what has none on a page came from no catalogue.

It is made as a translator would make one: collected by `makemessages`, filled in, and compiled by GNU gettext's msgfmt.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = "eo"  # one that Django knows, with two plural forms as in English
MISSING = "xgettext and msgfmt are missing: install gettext"
_ACCENTS = str.maketrans("aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ")
# Fields, tags and entities stay as they are.
_KEPT = re.compile(r"(\{[^{}]*\}|%\(\w+\)s|%%|<[^<>]*>|&#?\w+;)")


def can_be_made() -> bool:
    return all(shutil.which(tool) for tool in ("xgettext", "msgfmt"))


def pseudo(message: str) -> str:
    """Return the message with accents."""
    parts = _KEPT.split(message)
    return "".join(part if number % 2 else part.translate(_ACCENTS) for number, part in enumerate(parts))


def make(folder: Path) -> Path:
    """Collect, fill in and compile the catalogue; return the folder of languages, for GRID_LOCALE."""
    sources, locale = folder / "sources", folder / "locale"
    # makemessages writes beside the templates while it reads them.
    for name in ("grid", "dashboard", "templates"):
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "manage.py", sources)
    environment = {**os.environ, "GRID_VAR": str(folder / "var"), "GRID_LOCALE": str(locale), "GRID_DEMO": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    subprocess.run(
        [sys.executable, "manage.py", "makemessages", "--locale", LANGUAGE, "--verbosity", "0"],
        cwd=sources, env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    catalogue = locale / LANGUAGE / "LC_MESSAGES" / "django.po"
    catalogue.write_text("\n\n".join(_filled(catalogue.read_text())) + "\n")
    subprocess.run(
        ["msgfmt", "--check-format", "-o", catalogue.with_suffix(".mo"), catalogue],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return locale


def messages(catalogue: str) -> Iterator[tuple[str, str]]:
    """Yield each message of a catalogue and its plural form, or ""; the header is left out."""
    for entry in re.split(r"\n\s*\n", catalogue):
        catalogue_texts = {
            name: "".join(ast.literal_eval(line) for line in quoted.splitlines())
            for name, quoted in re.findall(r'^(msgid|msgid_plural) ((?:"[^\n]*"\n?)+)', entry, re.MULTILINE)
        }
        if catalogue_texts.get("msgid"):
            yield catalogue_texts["msgid"], catalogue_texts.get("msgid_plural", "")


def _filled(catalogue: str) -> Iterator[str]:
    head = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
    yield f'msgid ""\nmsgstr {_quoted(head)}'
    for singular, many in messages(catalogue):
        if many:
            forms = f"msgstr[0] {_quoted(pseudo(singular))}\nmsgstr[1] {_quoted(pseudo(many))}"
            yield f"msgid {_quoted(singular)}\nmsgid_plural {_quoted(many)}\n{forms}"
        else:
            yield f"msgid {_quoted(singular)}\nmsgstr {_quoted(pseudo(singular))}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
