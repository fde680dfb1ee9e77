"""Lists that are filled slowly: the first paint of a page does not wait for them."""

import pytest

from dashboard.shell.pages.lists import LiveLists
from dashboard.shell.pages.slices import Breath


def slow_filling(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Make the filling of a list look at one item in that many seconds. Changes are taken in as fast as ever."""

    def rest(lists: LiveLists) -> float:  # type: ignore[type-arg]
        return 0.0 if lists._dirty else seconds

    monkeypatch.setattr(Breath, "is_due", lambda breath: True)
    monkeypatch.setattr(LiveLists, "_rest", rest)
