"""The files of a project in Git, in a real browser."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser import filing
from tests.browser.conftest import Visit, on_stage
from tests.browser.looks import look_on_screens

FILES = "/projects/churn/files/"
filed = on_stage(filing.two_runs, autouse=False)


def test_pages_of_files_look_as_they_should(visit: Visit, filed: None) -> None:
    page = visit("alice", FILES)
    look_on_screens(page, "files")
    for name, query in (
        ("text", "?path=README.md"),
        ("image", "?path=plot.png"),
        ("notebook", "?path=plots.ipynb"),
        ("upload", "upload/?path=data"),
        ("history", "history/?at=job-second"),
    ):
        page.goto(f"{FILES}{query}")
        look_on_screens(page, f"files-{name}")
    for id in (filing.SAVED, filing.KEPT):
        page.goto(f"/executions/{id}/")
        expect(page.locator("#files")).to_contain_text("Began with")
        look_on_screens(page, f"execution-files-{id}", part="#files")
    page.goto(f"/executions/{filing.SAVED}/results/")
    look_on_screens(page, "results")


def test_member_finds_a_file_and_its_earlier_version(visit: Visit, filed: None, tmp_path: Path) -> None:
    page = visit("bob", "/projects/churn/")
    page.get_by_role("link", name="Files", exact=True).click()
    page.get_by_label("Branch", exact=True).select_option("job-second")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="data/").click()
    page.get_by_role("link", name="customers.csv").click()
    expect(page.locator("pre")).to_contain_text("bob,0")
    page.get_by_role("link", name="History").click()
    page.get_by_role("link", name="Prepare the data").click()
    expect(page.locator("pre")).to_contain_text("<script>alert(1)</script>")
    with page.expect_download() as downloaded:
        page.get_by_role("link", name="Download").click()
    downloaded.value.save_as(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "name,left\n<script>alert(1)</script>,1\n"


def test_a_member_reads_a_result_of_a_run(visit: Visit, filed: None) -> None:
    page = visit("alice", f"/executions/{filing.SAVED}/")
    page.get_by_role("link", name="Show results").click()
    expect(page.get_by_text("1 files of the results (2.0 MiB) are not kept")).to_be_visible()
    assert page.get_by_role("img", name="curve.png").evaluate("one => one.decode().then(() => one.naturalWidth)") == 1
    page.get_by_role("link", name="accuracy.csv", exact=True).click()
    expect(page.locator("pre")).to_contain_text("1,0.9")


def test_a_member_uploads_files_replaces_moves_and_deletes_one(
    visit: Visit, filed: None, forgiven: list[str], tmp_path: Path
) -> None:
    forgiven.append("422")
    for name in ("customers.csv", "more.csv"):
        (tmp_path / name).write_text("name,left\ncarol,1\n")
    chosen = [tmp_path / "customers.csv", tmp_path / "more.csv"]
    page = visit("bob", f"{FILES}?path=data")
    page.get_by_role("link", name="Upload").click()
    page.get_by_label("Files", exact=True).set_input_files(chosen)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("data/customers.csv exists already.")).to_be_visible()
    look_on_screens(page, "files-upload-refused")
    page.get_by_label("Files", exact=True).set_input_files(chosen)
    page.get_by_label("Replace files that exist").check()
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text("Saved: customers.csv and more.csv")).to_be_visible()
    page.get_by_role("link", name="customers.csv").click()
    expect(page.locator("pre")).to_contain_text("carol,1")
    page.get_by_role("link", name="Rename or move").click()
    expect(page.get_by_label("New path")).to_have_value("data/customers.csv")
    look_on_screens(page, "files-move")
    page.get_by_label("New path").fill("old/gone.csv")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_text("data/customers.csv is old/gone.csv now")).to_be_visible()
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_role("dialog").get_by_text("Nothing is lost")).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted: old/gone.csv.")).to_be_visible()
    expect(page.get_by_role("link", name="data/")).to_be_visible()
