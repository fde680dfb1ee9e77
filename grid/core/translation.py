"""Texts that people read, in the language of the installation (environment variable `GRID_LANGUAGE`, English unless it says otherwise).

What is written in code is English and the key of the catalogue: `_("{user} asks for {count} GPUs.", user=user, count=4)`. Rows are made
once for all who see them, and sentences are stored with what they tell of; so a language is chosen for all, as the currency is, and
a text is an ordinary `str` from the beginning. Templates use Django's tags; both read the same catalogues, which `manage.py
makemessages` collects and `manage.py compilemessages` compiles. This module needs no Django, so that rules may use it.
"""

import os
from gettext import GNUTranslations, translation
from pathlib import Path

LANGUAGE = os.environ.get("GRID_LANGUAGE") or "en"
# Further languages may lie beside the program, such as on a mounted volume.
FOLDER = Path(os.environ.get("GRID_LOCALE") or Path(__file__).parents[1] / "locale")
DOMAIN = "django"  # as Django names its catalogues


def folder_of(language: str) -> str:
    """Return the language as folders of catalogues are named, by Django too: "pt-br" is in pt_BR, "zh-hans" in zh_Hans."""
    main, _dash, variant = language.partition("-")
    return f"{main}_{variant.title() if len(variant) > 2 else variant.upper()}" if variant else main


_catalogue = translation(DOMAIN, FOLDER, [folder_of(LANGUAGE)], fallback=True)


def has_catalogue() -> bool:
    """Return whether the installation's language has a compiled catalogue of ours."""
    return isinstance(_catalogue, GNUTranslations)


def gettext(message: str, /, **values: object) -> str:
    """Return the text, its fields filled with the values as by `str.format`; without values, braces are as written."""
    text = _catalogue.gettext(message)
    return text.format(**values) if values else text


def ngettext(singular: str, plural: str, count: int, /, **values: object) -> str:
    """Return the text for that many, whose fields are the values and `count`."""
    return _catalogue.ngettext(singular, plural, count).format(count=count, **values)
