"""What is on the pictures of a project: its files in Git, what its jobs measured and kept, its budget; and revisions and warm places.

Each scene waits for what its picture shows, never for a time.
"""

import json
import re

from playwright.sync_api import FilePayload, Page, expect

from tests.end_to_end.people import PULL, configure, fill_launch_form, press_launch
from tests.pictures.studio import Studio
from tests.support.waiting import wait_until

# Its loss falls and its accuracy rises, each rate's in another way.
TRAINING = """\
import json, math, os, pathlib, struct, zlib

rate = float(os.environ.get("rate", "0.1"))
for step in range(400):
    loss = 2 * math.exp(-step * rate / 20) + 0.03 * math.sin(step)
    print(json.dumps({"step": step, "loss": round(loss, 4), "accuracy": round(1 - loss / 2.2, 4)}), flush=True)
results = pathlib.Path("results")
results.mkdir(exist_ok=True)
(results / "accuracy.csv").write_text(f"rate,accuracy\\n{rate},{1 - loss / 2.2:.4f}\\n")
(results / "model.json").write_text(json.dumps({"rate": rate, "loss": round(loss, 4)}))
"""
CHURN = [
    {"cell_type": "markdown", "metadata": {}, "source": "# Who leaves?\n\nCustomers without a contract, by month."},
    {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": {},
        "source": 'customers = read("data/customers.csv")\nlen(customers), sum(one.left for one in customers)',
        "outputs": [
            {
                "output_type": "execute_result",
                "execution_count": 1,
                "metadata": {},
                "data": {"text/plain": "(10000, 731)"},
            }
        ],
    },
]
FILES = [
    FilePayload(name="train.py", mimeType="text/x-python", buffer=TRAINING.encode()),
    FilePayload(name="README.md", mimeType="text/markdown", buffer=b"# Customer churn\n"),
    FilePayload(
        name="churn.ipynb",
        mimeType="application/json",
        buffer=json.dumps({"cells": CHURN, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(),
    ),
]
PROJECT = "/projects/churn/"


def take_all(studio: Studio) -> None:
    keep_files_in_git(studio)
    measure(studio)
    set_budget(studio)
    make_revision(studio)
    keep_places_warm(studio)


def keep_files_in_git(studio: Studio) -> None:
    page = studio.page("admin", f"{PROJECT}settings/")
    page.locator("#id_files").select_option("git")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile("/projects/$"))
    page = studio.page("scientist", f"{PROJECT}files/upload/")
    page.get_by_label("Files", exact=True).set_input_files(FILES)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("link", name="churn.ipynb")).to_be_visible()
    page.goto(f"{PROJECT}files/?path=churn.ipynb")
    expect(page.locator("main")).to_contain_text("731")
    studio.take(page, "files")
    page.goto(f"{PROJECT}remote/")
    expect(page.get_by_role("button", name="Store")).to_be_visible()
    studio.take(page, "remote")


def measure(studio: Studio) -> None:
    """A job and a sweep of three; one of its runs, and two compared."""
    configure(studio.page("admin", "/"), "Maximum executions per user", "40")  # whatever runs for other pictures
    page = studio.page("scientist", "/")
    fill_launch_form(page, tier="Tiny", title="Train the churn model", environment="Dask script", kind="job")
    page.locator("#id_command").fill("python train.py")
    press_launch(page)
    succeeded(page)
    run = page.url
    page.locator("#facts a[href^='/jobs/']").first.click()
    page.wait_for_url(re.compile(r"/jobs/\w+/$"))
    job = page.url
    page.goto(f"{job}sweep/")
    page.fill("#id_table", "rate\n0.02\n0.1\n0.5")
    page.get_by_role("button", name="Start the sweep").click()
    expect(page.locator("main")).to_contain_text("3 of 3 done", timeout=PULL)
    page.goto(page.url)
    page.get_by_label("Metric").select_option("loss")
    page.get_by_label("Order").select_option("Lowest first")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".chart-grid canvas").first).to_be_visible()
    studio.take(page, "sweep")
    page.goto(f"{run}results/")
    page.get_by_role("link", name="accuracy.csv", exact=True).click()
    expect(page.locator("pre")).to_contain_text("0.1,")
    page.goto(run)
    expect(page.locator("#files")).to_contain_text("Began with")
    expect(page.locator(".chart-grid canvas").first).to_be_visible()
    page.locator(".chart-grid").scroll_into_view_if_needed()
    studio.take(page, "metrics")
    page.goto(f"{job}compare/?a=2&b=4")
    studio.take(page, "compare")


def succeeded(page: Page) -> None:
    expect(page.locator(".execution-state")).to_contain_text("Succeeded", timeout=PULL)


def set_budget(studio: Studio) -> None:
    page = studio.page("admin", f"{PROJECT}budget/")
    page.get_by_label("Amount per calendar month").fill("60")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("of $60.00").first).to_be_visible()
    studio.take(page, "budget")


def make_revision(studio: Studio) -> None:
    page = studio.page("admin", "/environments/")
    page.get_by_role("link", name="Dask script", exact=True).click()
    revisions = f"{page.url}revisions/"
    page.goto(f"{revisions}new/")
    page.get_by_label("Requirements on top of a revision").check()
    page.get_by_label("Requirements", exact=True).fill("tabulate==0.9.0")
    page.get_by_label("Note").fill("Tables in the weekly report")
    page.get_by_role("button", name="Create revision").click()
    page.wait_for_url(re.compile(r"/revisions/(\d+/)?$"))
    page.goto(revisions)
    row = page.locator("tbody tr").first

    def is_ready() -> bool:
        page.reload()
        return "Ready" in row.inner_text()

    wait_until(is_ready, PULL / 1000, "the revision")
    studio.take(page, "revisions")


def keep_places_warm(studio: Studio) -> None:
    page = studio.page("admin", "/")
    configure(page, "Most warm places", "4")
    page.goto("/tiers/")
    page.get_by_role("link", name="Small", exact=True).click()
    page.locator("details", has=page.get_by_label("Warm places")).locator("summary").click()
    for label, text in {"Warm places": "2", "From": "07:30", "Until": "18:00", "Time zone": "Europe/Berlin"}.items():
        page.get_by_label(label, exact=True).fill(text)
    for day in ("Mon", "Tue", "Wed", "Thu", "Fri"):
        page.get_by_label(day, exact=True).check()
    page.get_by_label("Time zone").scroll_into_view_if_needed()
    studio.take(page, "warm")
