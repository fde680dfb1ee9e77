"""What axe (https://github.com/dequelabs/axe-core) finds on a page as it stands."""

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page


def violations(page: Page, part: str = "html") -> list[str]:
    """Return the rules that are broken in the part of the page that a selector names, each with the first three elements that break it."""
    found = Axe().run(page, context=part).response["violations"]
    return [f"{one['id']}: {[node['html'] for node in one['nodes']][:3]}" for one in found]
