"""Ids of executions and workspaces in addresses. What cannot be one is not asked of the database, which refuses some characters."""

import re
from collections.abc import Mapping


class IdConverter:
    """For `path`: an address with anything else in this place is no page."""

    regex = "[a-z0-9]{1,16}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


def id_in(query: Mapping[str, str], name: str) -> str:
    """The id that a query has under this name; "" when there is none, or something that cannot be one."""
    asked = query.get(name, "")
    return asked if re.fullmatch(IdConverter.regex, asked) else ""
