"""The pages of admins, of one's account and of people in a real browser: by keyboard alone, on a phone, in the dark."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser import administering
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import faults, look_on_screens, tab_to

ADMIN = "ada-admin"
PATHS = ("/tiers/", "/tiers/small/", "/tiers/gpu/", "/environments/jupyterlab/", "/projects/churn/settings/")
REVISIONS = "/environments/jupyterlab/revisions/"
catalogues = on_stage(administering.catalogues)
PASSWORD = "a long and new passphrase"
several_people = on_stage(administering.people, autouse=False)
CONFIGURATION = "/configuration/"
changed = on_stage(administering.changed_settings, autouse=False)
demonstration = on_stage(administering.begin_demonstration, end=administering.end_demonstration, autouse=False)
recorded = on_stage(administering.audit_entries, end=administering.no_audit_entries, autouse=False)


def type_into(page: Page, label: str, text: str) -> None:
    tab_to(page, page.get_by_label(label, exact=True))
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def forgive_refusals(forgiven: list[str]) -> None:
    """The browser writes an answer of 400 into its console; here it is what the test asks for."""
    forgiven.append("400")


def test_tier_is_made_by_keyboard_and_typing_error_found(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/")
    tab_to(page, page.get_by_role("link", name="New hardware tier"))
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("New hardware tier")
    for label, text in (
        *(("Id", "tiny"), ("Name", "Tiny"), ("Price", "0.02"), ("Description", "To look around.")),
        *(("Node pool", "default"), ("Cores", "50Om"), ("Memory", "1Gi")),
    ):
        type_into(page, label, text)
    page.keyboard.press("Enter")

    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("“50Om” is not a quantity")
    cores = page.get_by_label("Cores", exact=True)
    expect(cores).to_have_attribute("aria-invalid", "true")
    expect(cores).to_have_accessible_description(re.compile("is not a quantity"))
    expect(page.get_by_label("Memory", exact=True)).to_have_value("1Gi")

    tab_to(page, summary.get_by_role("link", name="Cores"))
    page.keyboard.press("Enter")
    expect(cores).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("500m")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Tiny is saved.")
    row = page.locator(".table-catalogue tr", has_text="Tiny")
    for words in ("0.5 cores", "1 GiB", "2 GiB", "same as request", "$0.02 an hour", "everybody"):
        expect(row).to_contain_text(words)
    forgive_refusals(forgiven)


def test_fit_of_a_tier_follows_what_is_typed(visit: Visit) -> None:
    page = visit(ADMIN, "/tiers/small/")
    expect(page.locator("#fit")).to_contain_text("of the pool default")
    page.get_by_label("Cores", exact=True).fill("9")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores")  # before it is saved
    save(page)
    expect(page.get_by_role("status")).to_have_text("Small is saved.")
    expect(page.locator("#fit")).to_contain_text("it asks for 9 cores, but the largest node has 8")


def test_rows_have_one_line_and_three_on_a_phone(visit: Visit) -> None:
    page = visit(ADMIN, "/account/")
    for path in ("/tiers/", "/environments/", "/projects/", "/people/", "/account/"):
        page.goto(path)
        for width, most in ((1440, 45), (800, 45), (390, 90)):
            page.set_viewport_size({"width": width, "height": 900})
            heights = page.locator(".table-lines tbody tr").evaluate_all(
                "all => all.map(row => row.getBoundingClientRect().height)"
            )
            assert heights, path
            assert max(heights) < most, (path, width)
            assert faults(page) == [], (path, width)


def test_failed_build_is_read_and_its_replacement_deprecated(visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("422")
    page = visit(ADMIN, "/environments/jupyterlab/")
    page.get_by_role("link", name="Revisions", exact=True).click()
    page.get_by_role("link", name="Revision 3", exact=True).click()
    expect(page.get_by_label("Lines of the log")).to_contain_text("Downloading polars.whl")
    page.goto(f"{REVISIONS}new/")
    page.get_by_label("Image", exact=True).fill("lab 5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.get_by_label("Image", exact=True)).to_have_accessible_description(re.compile("no name of an image"))
    page.get_by_label("Image", exact=True).fill("lab:5")
    page.get_by_role("button", name="Create revision").click()
    expect(page.locator("h1")).to_have_text("Revision 4")
    page.get_by_role("link", name="Deprecate", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("New launches take revision 2.")
    page.get_by_role("dialog").get_by_label("Why").fill("It was a mistake.")
    page.get_by_role("dialog").get_by_role("button", name="Deprecate it").click()
    expect(page.locator("tbody tr").first).to_contain_text("It was a mistake.")


def test_admin_pages_have_no_visible_fault(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/tiers/new/")
    save(page)
    look_on_screens(page, "admin-refused", opened=True)
    page.goto("/tiers/small/")
    page.get_by_label("Memory", exact=True).fill("5Gi")
    save(page)
    for path in (*PATHS, REVISIONS, f"{REVISIONS}3/", f"{REVISIONS}new/?from=3", f"{REVISIONS}2/deprecate/"):
        page.goto(path)
        look_on_screens(page, f"admin-{path.strip('/').replace('/', '-')}", opened=True)
    forgive_refusals(forgiven)


def test_open_page_says_that_its_session_ended_elsewhere(visit: Visit) -> None:
    there = visit("bob", "/executions/")
    expect(there.locator("#freshness")).to_contain_text("Live")
    here = visit("bob", "/account/")
    here.get_by_role("button", name="End all others").click()
    expect(here.get_by_role("status")).to_have_text("All your other sessions were ended.")
    expect(there.locator("#live")).to_contain_text("Your session has ended")
    there.goto("/executions/")
    expect(there.locator("h1")).to_have_text("Log in")


def lock_out(page: Page) -> None:
    for _ in range(10):
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill("wrong")
        with page.expect_navigation():
            page.get_by_role("button", name="Log in").click()


def test_account_pages_have_no_visible_fault(visit: Visit, forgiven: list[str]) -> None:
    visit(ADMIN, "/account/")
    page, guesser = visit(ADMIN, "/account/"), visit("bob", "/account/")
    guesser.locator("main").get_by_role("button", name="Log out").click()
    lock_out(guesser)
    expect(guesser.get_by_role("alert")).to_contain_text("Try again in 15 minutes, or ask an admin to unlock it.")
    look_on_screens(guesser, "account-locked")
    for path in ("/account/", "/logins/"):
        page.goto(path)
        look_on_screens(page, f"account-{path.strip('/')}")
    page.get_by_role("button", name="Unlock alice at 127.0.0.1").click()
    expect(page.get_by_role("status")).to_have_text("Unlocked: logging in is possible again.")
    forgiven.append("429")


def invite(page: Page) -> str:
    """Return the path of the link, whose origin is that of the settings."""
    page.get_by_label("Username").fill("nina")
    page.get_by_label("Role", exact=True).select_option("operator")
    page.get_by_role("button", name="Create the account and a link").click()
    return urlsplit(page.locator("#link").inner_text()).path


def set_password(page: Page) -> None:
    page.get_by_label("New password", exact=True).fill(PASSWORD)
    page.get_by_label("New password confirmation").fill(PASSWORD)
    page.get_by_role("button", name="Set password and log in").click()
    expect(page.locator(".notice-success")).to_have_text("Your password is set, and you are logged in.")


def test_an_invited_person_joins_once(several_people: None, visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/people/invite/")
    look_on_screens(page, "people-invite")
    link = invite(page)
    look_on_screens(page, "people-link")
    guest = visit("", link)
    expect(guest.locator("h1")).to_have_text("Set your password")
    assert guest.url.endswith("/set-password/"), "the token is not in the address"
    look_on_screens(guest, "people-join")
    set_password(guest)
    forgiven.append("410")
    guest.goto(link)
    expect(guest.locator("h1")).to_have_text("This link no longer works")
    look_on_screens(guest, "people-used")


def test_the_pages_of_people_look_as_they_should(several_people: None, visit: Visit) -> None:
    page = visit(ADMIN, "/people/?state=deactivated")
    look_on_screens(page, "people-deactivated")
    page.locator("tbody a").first.click()
    look_on_screens(page, "people-closed")
    page.goto("/people/")
    page.fill("#filter-text", "alice")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/people/\?text=alice$"))
    expect(page.locator("#filter-text")).to_be_focused()
    page.locator("tbody a").first.click()
    look_on_screens(page, "people-person")
    page.get_by_role("link", name="Deactivate").click()
    expect(page.get_by_role("dialog")).to_contain_text("They stay the owner of Customer churn")
    look_on_screens(page, "people-deactivate")
    page.get_by_role("dialog").get_by_role("link", name="Keep active").click()
    expect(page).to_have_url(re.compile(r"/people/\d+/$"))


def test_an_owner_manages_a_project_and_a_member_looks(several_people: None, visit: Visit) -> None:
    page = visit("alice", "/projects/")
    look_on_screens(page, "people-projects")
    page.get_by_role("link", name="Customer churn").click()
    look_on_screens(page, "people-project")
    page.get_by_role("link", name="Settings", exact=True).click()
    look_on_screens(page, "people-project-settings")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Members").click()
    look_on_screens(page, "people-project-members")
    page.get_by_label("Username").fill("charlie")
    page.get_by_role("form", name="Add a member").get_by_label("Role", exact=True).select_option("viewer")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a viewer now.")
    page.get_by_role("link", name="Make charlie a contributor").click()
    expect(page.get_by_role("dialog")).to_contain_text("charlie can launch in the project")
    look_on_screens(page, "people-project-question")
    page.get_by_role("dialog").get_by_role("button", name="Make contributor").click()
    expect(page.locator(".notice-success")).to_have_text("charlie is a contributor now.")
    look_on_screens(page, "people-project-changed")
    member = visit("charlie", "/projects/churn/")
    look_on_screens(member, "people-project-member")
    member.goto("/account/")
    look_on_screens(member, "people-account")


def field(page: Page, title: str) -> Locator:
    return page.get_by_label(title, exact=True)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile(f"^{name}")).click()


def lines(page: Page) -> Locator:
    return page.locator(".setting-review tbody tr")


def test_settings_are_changed_mistyped_reviewed_and_saved_together(
    changed: None, visit: Visit, forgiven: list[str]
) -> None:
    forgiven.append("400")
    page = visit(ADMIN, CONFIGURATION)
    field(page, "Preparing timeout").fill("7200")
    field(page, "Deploying timeout").fill("an hour")
    field(page, "Deploying timeout").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("1 value is not allowed")
    timeout = field(page, "Deploying timeout")
    expect(timeout).to_be_focused()
    expect(timeout).to_have_accessible_description(re.compile("not a whole number of seconds. In force is 3600"))
    timeout.fill("60")
    press(page, "Back to the default of Queue limit")
    expect(page.locator("h1")).to_have_text("Review 3 changes")
    expect(lines(page).nth(0)).to_contain_text("3 executions would end now: 3 of alice.")
    expect(lines(page).nth(2).locator("del")).to_have_text("500 executions")
    expect(lines(page).nth(2).locator("ins")).to_have_text("1000 executions (default)")
    press(page, "Go back")
    expect(timeout).to_have_value("60")
    expect(field(page, "Queue limit")).to_have_value("")
    field(page, "Preparing timeout").fill("3600")
    press(page, "Review changes")
    press(page, "Save 2 changes")
    expect(page.get_by_role("status")).to_have_text("2 settings changed; they are in force already.")
    expect(field(page, "Queue limit")).to_have_value("1000")
    expect(page.locator("tbody tr", has_text="3600 → 60")).to_have_count(1)


def test_filter_is_instant_and_loses_nothing_that_was_typed(changed: None, visit: Visit) -> None:
    page = visit(ADMIN, CONFIGURATION)
    field(page, "Audit log").fill("30")
    expect(page.get_by_role("button", name="Review changes")).to_have_text("Review changes (1)")
    search = page.get_by_label("Search the settings")
    search.press_sequentially("Drain TIME")
    expect(page.locator(".setting:visible label").first).to_have_text("Drain time")
    expect(field(page, "Drain time of Dask clusters")).to_be_visible()
    expect(field(page, "Audit log")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?q=Drain\+TIME$"))
    search.fill("nothing like this")
    expect(page.get_by_text("No setting matches.")).to_be_visible()
    search.fill("")
    page.get_by_label("Changed only").check()
    shown = ["Queue limit", "Idle limit", "Audit log", "Drain time of Dask clusters"]
    expect(page.locator(".setting:visible label")).to_have_text(shown)
    press(page, "Review changes")
    expect(lines(page)).to_have_count(1)
    press(page, "Go back")
    expect(field(page, "Audit log")).to_have_value("30")
    expect(page.get_by_label("Changed only")).to_be_checked()
    expect(page.get_by_role("button", name="Review changes")).to_have_text("Review changes (1)")


def test_configuration_states_have_no_visible_fault(changed: None, visit: Visit, forgiven: list[str]) -> None:
    forgiven.append("400")
    page = visit(ADMIN, CONFIGURATION)
    look_on_screens(page, "configuration-page", opened=True)
    field(page, "Deploying timeout").fill("60")
    field(page, "Maximum executions per user").fill("0")
    field(page, "Maximum workers").fill("ten")
    press(page, "Review changes")
    expect(page.get_by_role("alert")).to_be_visible()
    look_on_screens(page, "configuration-wrong", opened=True)
    field(page, "Maximum workers").fill("10")
    press(page, "Review changes")
    expect(lines(page)).to_have_count(3)
    look_on_screens(page, "configuration-review")


def test_demonstration_page_is_accessible_and_slider_says_its_value(visit: Visit, demonstration: None) -> None:
    page = visit("ada-admin", "/demonstration/")
    look_on_screens(page, "demonstration")
    slider = page.get_by_label("Changes a second")
    slider.press("ArrowRight")
    expect(page.locator("output[for=slider-churn]")).to_have_text("21")
    page.get_by_role("button", name="Start The API server is stuck").click()
    expect(page.locator(".notice")).to_contain_text("Every live page says how far behind it is")
    page.goto("/components/")
    expect(page.locator("h1")).to_have_text("Components")
    look_on_screens(page, "components")


def test_audit_log_is_filtered_read_on_and_exported(visit: Visit, recorded: None) -> None:
    page = visit("ada-admin", "/audit-log/")
    expect(page.get_by_text("1 entry is not sealed yet")).to_be_visible()
    look_on_screens(page, "audit-log")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newest")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(10)
    page.get_by_label("Action").select_option("Unlocked")
    expect(page.locator("tbody tr")).to_have_count(15)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CSV").click()
    assert len(download.value.path().read_text().splitlines()) == 16
    page.get_by_label("Username").fill("nobody")
    expect(page.get_by_text("No entry matches.")).to_be_visible()
