"""`path` for the URLs of rooms, with which the converters of ids and names are registered; and ids in queries. An invalid id is never
passed to the database, which rejects some characters."""

from collections.abc import Iterable, Mapping

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from grid.core.regexes import Expression

__all__ = ["id_in", "path", "valid_ids"]


class IdConverter(StringConverter):
    """A path converter for ids; a URL with anything else in this place does not match."""

    regex = "[a-z0-9]{1,16}"


class NameConverter(StringConverter):
    """A path converter for names that are looked up in the database: anything but a slash, and NUL, which PostgreSQL refuses."""

    regex = r"[^/\0]+"


register_converter(IdConverter, "id")
register_converter(NameConverter, "name")

_ID = Expression(IdConverter.regex)


def valid_ids(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if _ID.fullmatch(text)]


def id_in(query: Mapping[str, str], name: str) -> str:
    """Return the id that the query has under this name; "" when there is none or it is invalid."""
    asked = query.get(name, "")
    return asked if _ID.fullmatch(asked) else ""
