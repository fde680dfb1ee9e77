"""What axe (https://github.com/dequelabs/axe-core) finds on a page as it stands."""

from typing import Any, cast

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

_SCRIPT = cast(str, Axe().axe_script)
# Nothing is fetched again for it, because only rules about sound and about turning a phone would read that; and only what is broken
# comes back. Both save a third of the time.
_RUN = "part => axe.run(part, {resultTypes: ['violations'], preload: false}).then((results) => results.violations)"


def violations(page: Page, part: str = "html") -> list[str]:
    """Return the rules that are broken in the part of the page that a selector names, each with the first three elements that break it.

    On a page that is live a row may be replaced while axe reads its colours, so what it finds has to be there a moment later, too.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SCRIPT)
    if not page.evaluate(_RUN, part):
        return []
    page.wait_for_timeout(500)
    results: list[dict[str, Any]] = page.evaluate(_RUN, part)
    return [f"{violation['id']}: {[node['html'] for node in violation['nodes']][:3]}" for violation in results]
