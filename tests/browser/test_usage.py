"""Usage, budgets and start-up times in a real browser: what was used, what is left to spend, and how long starts take."""

from playwright.sync_api import expect

from tests.browser import budgeting, starting, using
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

used = on_stage(using.two_months, end=using.nothing, autouse=False)
started = on_stage(starting.a_month_of_starts, end=starting.nothing, autouse=False)


def test_way_leads_from_home_to_month_and_to_person(visit: Visit, used: None) -> None:
    page = visit("alice", "/usage/")
    expect(page.get_by_role("img", name="Used on")).to_be_visible()
    look_on_screens(page, "usage")
    page = visit("olga-operator", "/")
    page.get_by_role("button", name="olga-operator").click()
    page.get_by_role("link", name="Your usage").click()
    page.get_by_role("table").last.get_by_role("link").nth(1).click()
    expect(page.get_by_text("Nothing was used in").first).to_be_visible()
    page.get_by_role("link", name="Everybody’s usage").click()
    page.get_by_role("link", name="GPU hours").first.click()
    expect(page.locator("th[aria-sort]").first).to_have_text("GPU hours")
    look_on_screens(page, "usage-everybody")
    page.get_by_role("link", name="alice").click()
    expect(page.locator("h1")).to_have_text("Usage of alice")


spending = on_stage(budgeting.month, end=budgeting.nothing, autouse=False)


def test_those_who_spend_see_a_budget_that_admins_set(visit: Visit, spending: None) -> None:
    page, member = visit("ada-admin", "/projects/churn/"), visit("alice", "/projects/churn/")
    page.get_by_role("link", name="Budget", exact=True).first.click()
    look_on_screens(page, "budget")
    for path in ("/projects/churn/", "/launch/"):
        member.goto(path)
        expect(member.get_by_text(" of $130.00").first).to_be_visible()
        look_on_screens(member, f"budget-{path.strip('/').replace('/', '-')}")
    page.get_by_label("Amount per calendar month").fill("0.01")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The budget of Customer churn is saved.")).to_be_visible()
    member.reload()
    expect(member.get_by_text("Not accepted now", exact=True)).to_be_visible()
    look_on_screens(member, "budget-used-up")


def test_way_leads_from_all_tiers_to_the_slowest_start(visit: Visit, started: None) -> None:
    page = visit("olga-operator", "/startup/")
    expect(page.locator("h1")).to_have_text("Start-up times")
    expect(page.locator(".chart-card canvas")).to_have_count(2)
    look_on_screens(page, "startup")
    page.get_by_role("navigation", name="Time range").get_by_role("link", name="30 days").click()
    page.get_by_role("navigation", name="Grouped by").get_by_role("link", name="Environment").click()
    expect(page.locator("#days-title")).to_have_text("The last 30 days")
    first = page.locator("[aria-labelledby=groups-title] tbody").get_by_role("link").first
    name = first.inner_text()
    first.click()
    expect(page.get_by_role("heading", name=f"Phases of {name}")).to_be_visible()
    expect(page.locator("#days-title")).to_have_text(f"The last 30 days of {name}")
    look_on_screens(page, "startup-environment")
    page.locator("tbody").last.get_by_role("link").first.click()
    expect(page.locator(".startup-table caption")).to_contain_text("Started in")
    look_on_screens(page, "startup-execution")


def test_service_levels_show_budget_of_a_month_of_starts(visit: Visit, started: None) -> None:
    page = visit("olga-operator", "/service-levels/")
    while (
        again := page.get_by_role("link", name="Load again")
    ).count():  # the first look may take longer than a page waits
        again.click()
    level = page.get_by_role("region", name="Start-up time")
    expect(level.get_by_role("img")).to_have_count(2)
    expect(level).to_contain_text("starts that ran broke the promise")
    look_on_screens(page, "service-levels")
