"""The product in another language: a server whose catalogue has accents on all vowels shows no text of its frame without them."""

import re
from collections.abc import Iterator

import pytest

from tests.browser import executing
from tests.browser.conftest import StageProcess, Visit
from tests.browser.looks import follow
from tests.support import pseudolanguage

# That all texts are marked, `tests/test_texts.py` and `tests/test_template_texts.py` tell; here, that catalogues are made and used.
PAGES = ("/", "/executions/", "/overview/", "/launch/", "/tiers/new/", "/configuration/", "/people/invite/")
_WORD = re.compile("[A-Z][a-z]*[aeiouy]")
_ACCENT = re.compile("[áéíóúýÁÉÍÓÚÝ]")


@pytest.fixture(scope="module")
def server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    if not pseudolanguage.can_be_made():
        pytest.skip(pseudolanguage.MISSING)
    folder = tmp_path_factory.mktemp("language")
    environment = {"GRID_LANGUAGE": pseudolanguage.LANGUAGE, "GRID_LOCALE": str(pseudolanguage.make(folder))}
    process = StageProcess(folder, environment=environment)
    try:
        process.start()
        yield process
    finally:
        process.kill()


def test_titles_and_navigation_are_in_the_language_chosen(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit("ada-admin", "/")
    for path in PAGES:
        page.goto(path)
        if page.locator("#live").count():
            follow(page)
        texts = page.locator("h1, h2, thead th, .sidebar nav a").all_inner_texts()
        assert [text for text in texts if _WORD.search(text) and not _ACCENT.search(text)] == [], path
