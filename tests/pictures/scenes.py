"""What is on the pictures: a scientist's day, what operators see of it among 900 simulated pods, and an admin's pages.

Each scene waits for what its picture shows, never for a time.
"""

import re

from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.grid import put_into_project
from tests.end_to_end.people import PULL, attach_cluster, configure, fill_launch_form, press_launch
from tests.pictures.studio import Studio
from tests.support.waiting import wait_until

# Its tasks sleep, so that the cluster grows for what waits and the machine has time for the browser.
SCRIPT = """
import logging
import time

from distributed import Client, as_completed

logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("score")


def score(part):
    time.sleep(3)
    return 2500


client = Client()
log.info("Scoring 10,000,000 customers in 4,000 parts")
scored = 0
for number, part in enumerate(as_completed(client.map(score, range(4000))), start=1):
    scored += part.result()
    log.info("%s customers scored by %s workers", f"{scored:,}", len(client.scheduler_info()["workers"]))
    if number % 7 == 0:
        log.warning("Part %s has 14 customers without a contract; they get the mean", number)
"""
MOST_WORKERS = 6
SLOTS = MOST_WORKERS + 3  # the job, its cluster with a head, and a workspace
LOG = (
    "epoch 3 of 10, loss 0.213\nfatal: LIC-17 checkout failed\nConnectionRefusedError: [Errno 111] Connection refused\n"
)


def take_all(studio: Studio) -> None:
    put_into_project(studio.grid, "main.py", SCRIPT)
    ready = ("-o", "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
    nodes = ("get", "nodes", "-l", "dominodatalab.com/node-pool=default", *ready)
    wait_until(lambda: "True" in studio.grid.kubectl(*nodes), 300, "a node of the pool default")
    job = launch_job(studio)
    workspace = launch_workspace(studio)
    operate(studio)
    administer(studio)
    follow(studio, job)
    see_how_it_started(studio, workspace)
    wait_in_line(studio)
    be_at_home(studio)
    watch(studio)


def launch_job(studio: Studio) -> Page:
    page = studio.page("scientist", "/")
    fill_launch_form(page, tier="Tiny", title="Score all customers", environment="Dask script", kind="job")
    attach_cluster(page, framework="Dask", worker="tiny", maximum=MOST_WORKERS)
    page.get_by_label("Also grow for waiting tasks").check()
    expect(page.locator("#fit-details")).to_contain_text(f"{MOST_WORKERS} workers")
    page.get_by_label("Attach a cluster").scroll_into_view_if_needed()
    page.mouse.wheel(0, 5000)
    studio.take(page, "launch")
    press_launch(page)
    return page


def launch_workspace(studio: Studio) -> Page:
    page = studio.page("scientist", "/")
    fill_launch_form(page, tier="GPU", title="Churn model", environment="Dask notebook")
    expect(page.locator("#fit-summary")).to_contain_text("new node")
    studio.take(page, "fit")
    press_launch(page)
    expect(page.locator(".execution-head")).to_contain_text("A new node is being started")
    studio.take(page, "waiting")
    return page


def see_how_it_started(studio: Studio, workspace: Page) -> None:
    expect(workspace.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    expect(workspace.locator(".startup-table tr").first).to_be_visible()
    studio.take(workspace, "started")


def wait_in_line(studio: Studio) -> None:
    """Three launches beyond the scientist's slots, one of which an operator moves and one of which an operator holds."""
    configure(studio.page("admin", "/"), "Maximum executions per user", str(SLOTS))
    for title in ("Weekly report", "Price model", "Data cleaning"):
        page = studio.page("scientist", "/")
        fill_launch_form(page, tier="Small", title=title, environment="JupyterLab")
        press_launch(page)
        page.context.close()
    page = studio.page("operator", "/queue/")
    decide(page, "Price model", "Hold", reason="The licence server is down until noon")
    decide(page, "Data cleaning", "To the front")
    expect(page.locator("#queue tr")).to_have_count(3)
    expect(page.locator("#queue tr").first).to_contain_text("Data cleaning")
    studio.take(page, "queue")


def decide(page: Page, title: str, button: str, *, reason: str = "") -> None:
    page.get_by_role("link", name=f"Change the place of {title}").click()
    if reason:
        page.get_by_label("Reason, which the owner reads").fill(reason)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_url(re.compile("/queue/$"))


def operate(studio: Studio) -> None:
    # By name, because the youngest come and go while somebody ticks them.
    page = studio.page("operator", "/executions/?kind=workspace&status=running&sort=name")
    boxes = page.locator("#executions .select")
    wait_for_many(boxes, 20)
    for number in (1, 2, 4):
        boxes.nth(number).check()
    page.locator("#selected").get_by_role("button", name="Stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("Stop 3 executions?")
    studio.take(page, "stop-many")


def watch(studio: Studio) -> None:
    """The pages of operators, last, when there are samples of some minutes to draw."""
    page = studio.page("operator", "/infrastructure/?range=1h")
    wait_for_many(page.locator("#nodes tr"), 20)
    wait_for_many(page.locator(".chart canvas"), 3)
    studio.take(page, "infrastructure")

    page.goto("/overview/?range=1h")
    expect(page.locator("#waiting li").first).to_be_visible()
    wait_for_many(page.locator("#pool-map a"), 30)
    wait_for_many(page.locator(".chart canvas"), 3)
    studio.take(page, "overview")


def administer(studio: Studio) -> None:
    page = studio.page("admin", "/tiers/new/")
    tier = {"Id": "huge", "Name": "Huge", "Node pool": "default", "Cores": "64", "Memory": "256Gi", "Price": "3.50"}
    for label, text in tier.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#fit")).to_contain_text("large enough")
    studio.take(page, "tier")
    page.goto("/knowledge/new/")
    for label, text in {
        "Id": "licence",
        "Pattern": r"LIC-(\d+)",
        "Meaning": "All licences of product {} are in use.",
        "Cure": "Wait until one is free, and launch it again.",
    }.items():
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("The end of a log").fill(LOG)
    page.get_by_role("button", name="Search it").click()
    expect(page.locator(".findings li")).to_have_count(2)
    studio.take(page, "knowledge")
    page.goto("/configuration/")
    for setting, value in {
        "Maximum executions per user": "10",
        "Deploying timeout": "60",
        "Idle limit": "3600",
    }.items():
        page.get_by_label(setting, exact=True).fill(value)
    page.get_by_role("button", name="Review changes").click()
    expect(page.locator("h1")).to_contain_text("Review 3 changes")
    studio.take(page, "review")


def follow(studio: Studio, job: Page) -> None:
    """The job's cluster as it grows, and the job's log."""
    expect(job.locator(".execution-state")).to_contain_text("Running", timeout=PULL)
    cluster = job.context.new_page()
    cluster.goto(job.url)
    cluster.locator(".companion a").click()
    expect(cluster.locator("#workers .cell-ready")).to_have_count(MOST_WORKERS, timeout=PULL)
    expect(cluster.locator(".chart canvas")).to_be_visible()
    wait_for_many(cluster.locator(".samples-table tbody tr"), 6)
    studio.take(cluster, "cluster")

    log = studio.page("scientist", f"{job.url}?tab=log", is_dark=True)
    expect(log.locator("#log")).to_contain_text(re.compile(f"scored by {MOST_WORKERS} workers"))
    studio.take(log, "log")


def be_at_home(studio: Studio) -> None:
    home = studio.page("scientist", "/")
    expect(home.get_by_role("button", name="Open")).to_be_visible()
    studio.take(home, "home")
    phone = studio.page("scientist", "/executions/?user=scientist", is_phone=True)
    wait_for_many(phone.locator("#executions tr"), 3)
    studio.take(phone, "phone")


def wait_for_many(elements: Locator, count: int) -> None:
    """Wait until there are at least so many."""
    expect(elements.nth(count - 1)).to_be_attached()
