"""Browsers of several people on one Compute Grid, and what people do in them."""

import re
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.end_to_end.grid import Place
from tests.support.waiting import wait_until

PULL = 300_000  # milliseconds; JupyterLab is downloaded for real
SOON = 60_000


def log_in(browser: Browser, grid: Place, username: str) -> BrowserContext:
    """A browser window of its own, logged in."""
    context = browser.new_context(base_url=grid.url)
    page = context.new_page()
    enter_password(page, username, grid.password(username))
    page.close()
    return context


def enter_password(page: Page, username: str, password: str) -> None:
    page.goto("/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login/" not in url)


def forbid_reload(page: Page) -> None:
    """Marks the document, so that `was_not_reloaded` can tell whether it is still the same."""
    page.evaluate("document.documentElement.dataset.witness = 'here'")


def was_not_reloaded(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.dataset.witness === 'here'"))


def launch(page: Page, *, tier: str, title: str, environment: str = "JupyterLab") -> str:
    """Fill the form as a person does; gives the execution's id."""
    fill_launch_form(page, tier=tier, title=title, environment=environment)
    return press_launch(page)


def fill_launch_form(page: Page, *, tier: str, title: str, environment: str, kind: str = "workspace") -> None:
    page.goto(f"/launch/?kind={kind}")
    page.get_by_label("Title").fill(title)
    page.get_by_role("radio", name=re.compile(rf"^{environment}")).check()
    page.get_by_role("radio", name=re.compile(rf"^{tier}")).check()


def press_launch(page: Page) -> str:
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"/executions/\w+/"))
    return page.url.rstrip("/").rsplit("/", 1)[1]


def attach_cluster(page: Page, *, framework: str, worker: str, maximum: int) -> None:
    """The form's part about a cluster; `worker` is a tier's id, and the rest stays as the form proposes it."""
    page.get_by_label("Attach a cluster").check()
    page.get_by_role("radio", name=re.compile(rf"^{framework} [0-9]")).check()
    page.get_by_label("Each worker", exact=True).select_option(value=worker)
    page.get_by_label("Maximum workers").fill(str(maximum))


def configure(page: Page, setting: str, value: str) -> None:
    """An admin's page: one setting of the central configuration."""
    page.goto("/configuration/")
    field = page.get_by_label(setting, exact=True)
    field.fill(value)
    field.press("Enter")
    page.get_by_role("button", name="Save 1 change").click()
    expect(page.locator("body")).to_contain_text(f"{setting} is now {value}")


def open_lab(context: BrowserContext, page: Page) -> Page:
    with context.expect_page() as opened:
        page.get_by_role("button", name="Open").click()
    lab = opened.value
    expect(lab.locator("#jp-main-dock-panel, .jp-LauncherBody").first).to_be_visible(timeout=SOON)
    return lab


def run_cell(lab: Page, code: str, answer: str) -> None:
    """A new notebook, one cell, and what its kernel says over the websocket."""
    lab.locator(".jp-LauncherCard", has_text="Python 3").first.click(timeout=SOON)
    # What is typed before the kernel is connected runs later than anybody waits for it.
    expect(lab.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']")).to_be_visible(timeout=SOON)
    cell = lab.locator(".jp-Notebook .jp-Cell .cm-content").first

    def is_written() -> bool:
        """JupyterLab draws a new notebook's cell again when its kernel comes, which loses what was typed until then."""
        cell.fill(code, timeout=SOON)
        return cell.inner_text() == code and "Idle" in lab.locator("#jp-main-statusbar").inner_text()

    wait_until(is_written, SOON / 1000, "a cell that takes code")
    cell.press("Shift+Enter")
    expect(lab.locator(".jp-OutputArea-output").first).to_contain_text(answer, timeout=SOON)


def upload(lab: Page, file: Path) -> None:
    """With the file browser's own button; a long file goes in several requests, and is listed from the first on."""
    with lab.expect_file_chooser() as asked:
        lab.get_by_title("Upload Files").first.click()
    asked.value.set_files(file)
    size = """async (name) => {
        const answer = await fetch(`/api/contents/${name}?content=0`);
        return answer.ok ? (await answer.json()).size : 0;
    }"""
    wait_until(lambda: lab.evaluate(size, file.name) == file.stat().st_size, SOON / 1000, f"the whole of {file.name}")


def download(lab: Page, name: str) -> bytes:
    """With the file browser's context menu; what the browser has saved."""
    _listed(lab, name).click(button="right")
    with lab.expect_download(timeout=SOON) as saved:
        lab.get_by_role("menuitem", name="Download", exact=True).click()
    assert saved.value.suggested_filename == name
    return saved.value.path().read_bytes()


def _listed(lab: Page, name: str) -> Locator:
    return lab.locator(".jp-DirListing-item", has_text=name)


def stop(page: Page) -> None:
    page.get_by_role("link", name="Stop").click()
    page.get_by_role("button", name=re.compile("Stop")).click()


def resume(page: Page) -> None:
    """From the page of its execution, as soon as that has ended."""
    expect(page.locator(".execution-state")).to_contain_text("Stopped", timeout=SOON)
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume").click()
    page.wait_for_url(re.compile(r"/executions/\w+/"))


def run_in_terminal(lab: Page, command: str) -> str:
    """What a terminal of this workspace answers, over the websocket that JupyterLab itself would open."""
    script = """async ([command, mark]) => {
        const token = document.cookie.match(/_xsrf=([^;]+)/)[1];
        const made = await fetch("/api/terminals", { method: "POST", headers: { "X-XSRFToken": token } });
        const { name } = await made.json();
        const socket = new WebSocket(`ws://${location.host}/terminals/websocket/${name}`);
        let text = "";
        return await new Promise((resolve, reject) => {
            setTimeout(() => reject(new Error("the terminal said only: " + text)), 20000);
            socket.onopen = () => socket.send(JSON.stringify(["stdin", command + "; echo $((" + mark + "))\\r"]));
            socket.onmessage = (message) => {
                const [kind, part] = JSON.parse(message.data);
                if (kind === "stdout") text += part;
                if (text.includes("86420")) resolve(text);
            };
        });
    }"""
    return str(lab.evaluate(script, [command, "43210 * 2"]))


def kernels(lab: Page) -> list[str]:
    """Ids of the kernels that run in this workspace, as its server tells them."""
    script = """async () => {
        return (await (await fetch("/api/kernels")).json()).map((kernel) => kernel.id);
    }"""
    return sorted(lab.evaluate(script))
