"""People's text never stops a web process: hostile text of each class on each page that shows it, while `/healthz` is asked."""

from collections.abc import Iterator

import pytest

from tests.edge.hostiletext import HARMLESS, LINES, Asker, common_pages, health_of, pages, repositories_in, store_for
from tests.edge.process import WebProcess, web_process

# A busy machine may take a second by chance; quadratic expressions took 7 s and more. `python -m benchmarks.hostiletext` measures
# the milliseconds.
BOUND_SECONDS = 2.0
TRIES = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    folder = tmp_path_factory.mktemp("web")
    with web_process(folder, **repositories_in(folder)) as process:
        store_for(process)
        yield process


@pytest.fixture(scope="module")
def asker(web: WebProcess) -> Asker:
    return Asker(web)


@pytest.fixture(scope="module")
def harmless(web: WebProcess, asker: Asker) -> dict[str, float]:
    """The longest answer of `/healthz` while each page shows harmless text, in seconds."""
    return {what: longest(web, asker, *asked) for what, asked in pages(HARMLESS).items()}


def longest(web: WebProcess, asker: Asker, method: str, path: str) -> float:
    with health_of(web.port) as health:
        assert asker.ask(method, path) == 200, path
    return health.longest


@pytest.mark.parametrize("name", [name for name in LINES if name != HARMLESS])
def test_hostile_text_keeps_nobody_waiting(
    web: WebProcess, asker: Asker, harmless: dict[str, float], name: str
) -> None:
    for what, asked in pages(name).items():
        waits: list[float] = []
        while len(waits) < TRIES and (not waits or waits[-1] > BOUND_SECONDS + harmless[what]):
            waits.append(longest(web, asker, *asked))
        assert min(waits) <= BOUND_SECONDS + harmless[what], f"{what} with {name}: /healthz waited {min(waits):.1f} s"


def test_texts_of_all_classes_together_keep_nobody_waiting(web: WebProcess, asker: Asker) -> None:
    for what, asked in common_pages().items():
        waits = [longest(web, asker, *asked)]
        while len(waits) < TRIES and waits[-1] > BOUND_SECONDS:
            waits.append(longest(web, asker, *asked))
        assert min(waits) <= BOUND_SECONDS, f"{what}: /healthz waited {min(waits):.1f} s"
