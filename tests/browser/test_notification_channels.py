"""Choosing and testing a webhook in a real browser, against a real server."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser import notifying
from tests.browser.conftest import Visit
from tests.browser.stage import StageProcess


@pytest.fixture
def receiver(stage: StageProcess) -> Iterator[str]:
    yield str(stage.play(notifying.sending))
    stage.play(notifying.sends_no_more)


def test_a_webhook_is_set_tested_and_chosen(
    stage: StageProcess, visit: Visit, receiver: str, forgiven: list[str]
) -> None:
    forgiven.append("422")
    page = visit("alice", "/account/")
    page.get_by_role("link", name="Set a webhook").click()
    page.get_by_label("Address").fill("http://example.com/")
    page.get_by_role("button", name="Save and create a secret").click()
    expect(page.locator(".field-error")).to_have_text("Use an address that begins with https://.")
    page.get_by_label("Address").fill(f"{receiver}/fails")
    page.get_by_role("button", name="Save and create a secret").click()
    expect(page.locator("#secret")).not_to_be_empty()
    page.get_by_role("link", name="Done").click()

    page.get_by_role("button", name="Send a test by Webhook").click()
    expect(page.get_by_role("status")).to_contain_text("The test was not sent. localhost answered with status 500.")
    expect(page.locator("#channel-webhook")).to_contain_text(
        "The latest was given up. localhost answered with status 500."
    )

    page.get_by_role("link", name="Change webhook").click()
    page.get_by_label("Address").fill(f"{receiver}/takes")
    page.get_by_role("button", name="Save and create a secret").click()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("button", name="Send a test by Webhook").click()
    expect(page.get_by_role("status")).to_contain_text("The test was sent. The webhook's server took it.")

    page.get_by_role("checkbox", name="Webhook, when it has failed").check()
    page.locator("#notifications").get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("checkbox", name="Webhook, when it has failed")).to_be_checked()
    stage.play(notifying.fails)
    expect(page.locator("#channel-webhook")).to_contain_text("The latest")
    for _ in range(40):
        events = [json.loads(body)["event"] for body in stage.play(notifying.posted)]
        if "failed" in events:
            break
        page.wait_for_timeout(250)
    assert events == ["test", "test", "failed"]
