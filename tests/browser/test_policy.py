"""The Content-Security-Policy in a browser: our pages and Django's admin work under it, and what slips into a page does not run."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser import administering
from tests.browser.conftest import ANYTHING, StageProcess, Visit, on_stage

ADMIN = "ada-admin"
# All other tests' pages are under it too, and fail for what it refuses.
PAGES = ("/admin/", "/admin/grid/user/add/", "/admin/auth/group/add/", "/admin/grid/user/")
_INJECT = """html => {
    window.ran = [];
    window.refused = [];
    document.addEventListener("securitypolicyviolation", event => window.refused.push(event.effectiveDirective));
    document.body.insertAdjacentHTML("beforeend", html);
    const copy = document.createElement("script");
    copy.textContent = "window.ran.push('inline')";
    document.body.append(copy);
    const file = document.createElement("script");
    file.src = "/static/dashboard.js";
    file.onload = () => window.ran.push("file");
    document.body.append(file);
}"""
_SUBMIT = """([address, patience]) => new Promise(resolve => {
    document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
    const frame = Object.assign(document.createElement("form"), {action: address, method: "get"});
    document.body.append(frame);
    frame.submit();
    setTimeout(() => resolve("allowed"), patience);
})"""
catalogues = on_stage(administering.catalogues)


def test_pages_of_djangos_admin_keep_policy_and_scripts(visit: Visit) -> None:
    """`visit` fails the test for whatever the browser complains of in its console."""
    page = visit(ADMIN, PAGES[0])
    for path in PAGES:
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
    page.get_by_role("link", name="olga-operator").click()
    expect(page.locator(".selector-available").first).to_be_visible()


def test_script_that_slipped_into_a_page_does_not_run(visit: Visit, forgiven: list[str]) -> None:
    page = visit(ADMIN, "/account/")
    # A picture that is none, and not one that is missing: the browser may complain of that when the test is over.
    page.evaluate(_INJECT, "<img src=/static/dashboard.css onerror=\"window.ran.push('handler')\">")
    page.wait_for_function("window.refused.length >= 3")
    assert sorted(page.evaluate("window.refused")) == ["script-src-attr", "script-src-elem", "script-src-elem"]
    assert page.evaluate("window.ran") == []
    forgiven.append(ANYTHING)


@pytest.mark.parametrize(("host", "outcome"), [("x1.localhost", "allowed"), ("elsewhere.example", "form-action")])
def test_a_form_leads_here_or_to_a_workspace(
    visit: Visit, stage: StageProcess, forgiven: list[str], host: str, outcome: str
) -> None:
    page = visit(ADMIN, "/account/")
    page.route(f"**://{host}:*/**", lambda route: route.abort())
    port = urlsplit(stage.url).port
    try:
        assert page.evaluate(_SUBMIT, [f"http://{host}:{port}/", 500 if outcome == "allowed" else 20_000]) == outcome
    except Exception as error:
        assert outcome == "allowed", error
        assert "context was destroyed" in str(error)
    forgiven.append(ANYTHING)
