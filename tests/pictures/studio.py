"""Browsers of several people on one Compute Grid, and the camera."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.grid import Place
from tests.end_to_end.people import enter_password
from tests.pictures.png import small_png

PATIENCE_MS = 300_000  # on a machine with other work
WIDE = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


class Studio:
    """Each person logs in once; `page` opens a page of theirs as `light` or `dark`, wide or as on a phone."""

    def __init__(self, browser: Browser, grid: Place, folder: Path) -> None:
        self.grid = grid
        self._browser = browser
        self._folder = folder
        self._sessions: dict[str, Any] = {}
        self._darkroom = browser.new_page()
        expect.set_options(timeout=PATIENCE_MS)

    def page(self, person: str, path: str, *, is_dark: bool = False, is_phone: bool = False) -> Page:
        context = self._browser.new_context(
            base_url=self.grid.url,
            storage_state=self._sessions.get(person),
            viewport=PHONE if is_phone else WIDE,  # type: ignore[arg-type]
            color_scheme="dark" if is_dark else "light",
        )
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        if person not in self._sessions:
            enter_password(page, person, self.grid.password(person))
            self._sessions[person] = context.storage_state()
        page.goto(path)
        return page

    def take(self, page: Page, name: str) -> None:
        """Write the picture, once a live page is live."""
        freshness = page.locator("#freshness")
        if freshness.count():
            expect(freshness).to_contain_text("Live")
        picture = small_png(page.screenshot(animations="disabled"), self._darkroom)
        (self._folder / f"{name}.png").write_bytes(picture)
