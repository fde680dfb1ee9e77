"""Project files in Git on the embedded cluster: a job writes a file, the repository has the commit, the next job sees it."""

import re
import subprocess

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.grid import Grid
from tests.end_to_end.people import PULL, SOON, fill_launch_form, log_in, press_launch, stop

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(900)]


def git(grid: Grid, *arguments: str) -> str:
    folder = grid.var / "cluster" / "machine" / "repositories" / "churn.git"
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def run(page: Page, title: str, command: str) -> str:
    fill_launch_form(page, tier="Tiny", title=title, environment="Dask script", kind="job")
    page.locator("#id_command").fill(command)
    return press_launch(page)


def test_job_commits_files_that_the_next_one_starts_with(grid: Grid, browser: Browser) -> None:
    grid.start()
    page = log_in(browser, grid, "admin").new_page()
    page.goto("/projects/")
    page.locator("tbody th a").first.click()
    page.get_by_role("link", name="Settings", exact=True).click()
    page.locator("#id_files").select_option("git")
    page.get_by_role("button", name="Save").click()
    page = log_in(browser, grid, "scientist").new_page()
    run(page, "Write", "mkdir -p data && echo made by a job > data/result.txt")
    expect(page.locator(".execution-state")).to_contain_text("Succeeded", timeout=PULL)
    commit = git(grid, "rev-parse", "main")
    assert git(grid, "show", "main:data/result.txt") == "made by a job"
    expect(page.locator("#files")).to_contain_text(commit[:8], timeout=SOON)

    run(page, "Read", "cat data/result.txt && sleep 600")
    expect(page.locator(".execution-state")).to_contain_text("Running", timeout=SOON)
    address = page.url
    page.goto(f"{address}?tab=log")
    expect(page.locator("body")).to_contain_text("made by a job", timeout=SOON)
    page.goto(address)
    stop(page)
    page.goto(address)
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    expect(page.locator("#files")).to_contain_text(re.compile("nothing.*changed", re.I), timeout=SOON)
