"""The product in another language: a server whose catalogue has accents on all vowels shows no text of ours without them."""

import gettext
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from asgiref.sync import sync_to_async
from playwright.sync_api import Page

from grid.kube.resources import NODES, PODS
from tests.browser import executing
from tests.browser.conftest import Visit
from tests.browser.following import follow
from tests.browser.server import Stage
from tests.browser.stage import StageProcess
from tests.browser.test_looks import PAGES
from tests.support import pseudolanguage

# Of all people, whose pages have most of the texts; what is not marked as a text, `tests/test_texts.py` tells.
PERSON, MORE = "ada-admin", ["/launch/?kind=job", "/usage/", "/alerts/", "/executions/aaaa2222bb/", "/account/webhook/"]
_READ = """() => {
  const found = [], code = "script, style, noscript, pre, code, :has(> code:only-child), kbd, .mono, .log, [spellcheck=false]";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (!node.parentElement.closest(code)) found.push(node.textContent);
  for (const name of ["title", "placeholder", "aria-label", "alt"])
    for (const element of document.querySelectorAll(`[${name}]`))
      if (!element.closest(code)) found.push(element.getAttribute(name));
  return found;
}"""
_VOWEL, _ACCENT = re.compile("[aeiouyAEIOUY]"), re.compile("[áéíóúýÁÉÍÓÚÝ]")
_WORDS = re.compile(r"[A-Z][a-z]{2,}$|.*[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}")


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


def test_no_text_of_ours_stays_in_english(stage: StageProcess, visit: Visit) -> None:
    stage.play(executing.working_day)
    page = visit(PERSON, "/")
    others = sorted([*_django_says(), *stage.play(stored)], key=len, reverse=True)
    plain = [
        f"{path}: {text}"
        for path in (*PAGES[PERSON], *MORE)
        for text in sorted(_texts_on(page, path))
        if _is_plain(text, others)
    ]
    assert not plain, "\n".join(plain)


async def stored(stage: Stage) -> list[str]:
    """Return all texts of the database: what people named and wrote, and sentences as they were stored."""
    from django.apps import apps

    def read() -> list[str]:
        texts: set[str] = set()
        for model in apps.get_models():
            for row in model._default_manager.values_list():
                texts.update(_strings(row))
        for kind in (NODES, PODS):
            texts.update(_strings(stage.cluster.objects(kind)))
        return [text for text in texts if len(text) > 3 and _WORDS.match(text)]

    return await sync_to_async(read)()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _django_says() -> list[str]:
    """Return what Django's own catalogues have in this language, up to the first field."""
    root = Path(django.__file__).parent
    folders = (root / "conf" / "locale", root / "contrib" / "auth" / "locale")
    catalogues = [gettext.translation("django", folder, [pseudolanguage.LANGUAGE]) for folder in folders]
    texts = [text for catalogue in catalogues for text in vars(catalogue)["_catalog"].values()]
    return [start for text in texts if len(start := text.split("%")[0].strip()) > 3]


def _texts_on(page: Page, path: str) -> set[str]:
    answer = page.goto(path)
    assert answer is not None
    assert answer.ok, (path, answer.status)
    if page.locator("#live").count():
        follow(page)
    return {" ".join(text.split()) for text in page.evaluate(_READ)}


def _is_plain(text: str, others: list[str]) -> bool:
    if _ACCENT.search(text) or not _looks_english(text):
        return False
    for other in others:
        text = text.replace(other, "")
    return _looks_english(text.strip())


def _looks_english(text: str) -> bool:
    return bool(_VOWEL.search(text) and _WORDS.match(text))
