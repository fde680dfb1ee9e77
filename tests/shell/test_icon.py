"""The icon at its usual address, for whoever does not read the page's link to it."""

from django.test import Client


def test_favicon_is_served_without_a_login(db: None, client: Client) -> None:
    answer = client.get("/favicon.ico", follow=True)
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
    assert content.startswith(b"\x00\x00\x01\x00"), "the beginning of an ICO file"
