"""The configuration page: one form, a review with its consequences, all saved or nothing, and nobody overwritten."""

import json
from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.configuration.viewmodel import SettingRow
from grid import configuration as centralconfig
from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS
from grid.models import AuditEntry, ConfigRecord, State, User
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.support.golden import assert_golden
from tests.support.settings import change

PAGE = "/configuration/"
SLOTS, QUEUE = centralconfig.MAXIMUM_EXECUTIONS_PER_USER.key, centralconfig.GLOBAL_QUEUE_LIMIT.key
TIMEOUT, AUDIT = centralconfig.DEPLOYING_TIMEOUT.key, centralconfig.AUDIT_RETENTION.key
RAY_SWITCH = FRAMEWORK_SETTINGS["ray"]["autoscaling"].key


def send(client: Client, do: str = "review", base: Any = None, **fields: str) -> Any:
    """Send the form of a page that was made from `base`; the overrides of now when it is None."""
    base = centralconfig.overrides() if base is None else base
    return client.post(PAGE, {"base": json.dumps(base), "do": do, **fields})


def text_of(answer: Any) -> str:
    return unescape(answer.content.decode())


def rows_of(answer: Any) -> dict[str, SettingRow]:
    return {row.setting.key: row for section in answer.context["sections"] for row in section.rows}


def form_of(answer: Any) -> dict[str, str]:
    """What a browser would send of the review as it is."""
    return {"base": answer.context["base"], **{line.change.setting.key: line.text for line in answer.context["lines"]}}


def test_changes_are_saved_only_after_confirmed_review(admin: Client) -> None:
    review = send(admin, **{SLOTS: "3", QUEUE: " 500 ", TIMEOUT: "3600"})
    assert "Save 2 changes" in text_of(review)
    assert [line.change.setting.title for line in review.context["lines"]] == [
        "Maximum executions per user",
        "Queue limit",
    ]
    assert centralconfig.overrides() == {}
    saved = admin.post(PAGE, {**form_of(review), "do": "save"}, follow=True)
    assert saved.redirect_chain == [(PAGE, 302)]
    assert "2 settings changed; they are in force already." in text_of(saved)
    assert centralconfig.overrides() == {SLOTS: "3", QUEUE: "500"}
    assert AuditEntry.objects.filter(object_type="setting", actor_name="ada-admin").count() == 2


def test_a_review_says_what_a_change_does_at_once(admin: Client, people: People) -> None:
    make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING)
    page = text_of(send(admin, **{TIMEOUT: "60", AUDIT: "0"}))
    assert "1 execution would end now: 1 of alice." in page
    assert "Nothing is deleted now. Earlier deletions are not undone." in page


def test_wrong_value_is_reported_at_field_and_blocks_saving(admin: Client) -> None:
    answer = send(admin, "save", **{SLOTS: "many", QUEUE: "500", TIMEOUT: "-4"})
    assert answer.status_code == 400
    wrong = {row.setting.key: row.errors for row in answer.context["wrong"]}
    assert wrong == {
        SLOTS: ("“many” is not a whole number of slots. In force is 25 slots.",),
        TIMEOUT: ("Must be between 1 and 2592000 seconds. In force is 3600 seconds (1 h).",),
    }
    page = text_of(answer)
    assert "Nothing was saved: 2 values are not allowed." in page
    assert all(f'id="error-{key}"' in page for key in wrong)
    assert 'value="many"' in page and 'value="500"' in page
    assert centralconfig.overrides() == {} and not AuditEntry.objects.exists()


def test_going_back_keeps_what_was_typed(admin: Client, people: People) -> None:
    change(QUEUE, "500", actor=people.admin)
    review = send(admin, **{SLOTS: "3", "reset": QUEUE})
    rows = rows_of(admin.post(PAGE, {**form_of(review), "do": "back"}))
    assert (rows[SLOTS].value, rows[SLOTS].is_typed) == ("3", True)
    assert (rows[QUEUE].value, rows[QUEUE].is_typed) == ("", True)
    assert not rows[TIMEOUT].is_typed


def test_reset_is_reviewed_together_with_typed_changes(admin: Client, people: People) -> None:
    change(QUEUE, "500", actor=people.admin)
    review = send(admin, **{SLOTS: "3", QUEUE: "700", "reset": QUEUE})
    assert [(line.old, line.new, line.change.wanted is None) for line in review.context["lines"]] == [
        ("25 slots", "3 slots", False),
        ("500 executions", "1000 executions", True),
    ]
    admin.post(PAGE, {**form_of(review), "do": "save"})
    assert centralconfig.overrides() == {SLOTS: "3"}
    assert AuditEntry.objects.filter(action="reset", object_id=QUEUE, changes={"value": [500, 1000]}).exists()


@pytest.mark.parametrize(
    ("key", "sentence"), [("no.such.key", "There is no setting named no.such.key."), ("", "Name the setting.")]
)
def test_unknown_key_is_reported_at_its_field(admin: Client, key: str, sentence: str) -> None:
    answer = send(admin, key=key, value="1")
    assert answer.status_code == 400
    assert answer.context["direct"] == (key, "1", (sentence,))
    assert 'id="direct-error"' in text_of(answer)


def test_contradiction_is_reported_at_the_fields_that_cause_it(admin: Client) -> None:
    lowest, highest = (CLUSTER_SETTINGS[name].key for name in ("minimum_target", "maximum_target"))
    answer = send(admin, **{highest: "70", QUEUE: "500"})
    assert answer.status_code == 400
    assert [row.setting.key for row in answer.context["wrong"]] == [highest]
    answer = send(admin, **{highest: "70", lowest: "80"})
    assert [row.setting.key for row in answer.context["wrong"]] == [lowest, highest]


def test_slower_admin_sees_who_changed_what_and_when(admin: Client, people: People) -> None:
    review = send(admin, **{SLOTS: "3", QUEUE: "500"})
    bob = User.objects.create_superuser("bob-admin")
    change(QUEUE, "700", actor=bob)
    at = AuditEntry.objects.get().at
    answer = admin.post(PAGE, {**form_of(review), "do": "save"})
    assert answer.status_code == 409
    sentence = f"bob-admin changed this to 700 executions on {at:%Y-%m-%d at %H:%M:%S} UTC."
    assert [row.setting.key for row in answer.context["wrong"]] == [QUEUE]
    assert sentence in text_of(answer) and "somebody else changed this setting in the meantime" in text_of(answer)
    assert centralconfig.overrides() == {QUEUE: "700"}

    # What was typed is kept, and saved when it is reviewed once more, against what is stored now.
    rows = rows_of(answer)
    again = {"base": answer.context["base"], **{row.setting.key: row.value for row in rows.values()}}
    review = admin.post(PAGE, {**again, "do": "review"})
    assert [(line.old, line.new) for line in review.context["lines"]] == [
        ("25 slots", "3 slots"),
        ("700 executions", "500 executions"),
    ]


def test_a_stale_form_brings_no_old_value_back(admin: Client, people: People) -> None:
    change(QUEUE, "500", actor=people.admin)
    page = admin.get(PAGE)
    shown = {"base": page.context["base"], **{row.setting.key: row.value for row in rows_of(page).values()}}
    change(QUEUE, "700", actor=people.admin)
    change(TIMEOUT, "60", actor=people.admin)
    review = admin.post(PAGE, {**shown, SLOTS: "3", "do": "review"})
    assert [line.change.setting.key for line in review.context["lines"]] == [SLOTS]
    admin.post(PAGE, {**form_of(review), "do": "save"})
    assert centralconfig.overrides() == {QUEUE: "700", TIMEOUT: "60", SLOTS: "3"}


@pytest.mark.parametrize(
    "base",
    ["", "[]", '{"a": 1}', "{" * 5000, json.dumps({QUEUE: "<b>"})],
    ids=["none", "list", "number", "deep", "markup"],
)
def test_a_form_that_is_none_of_ours_is_refused(admin: Client, base: str) -> None:
    assert admin.post(PAGE, {"base": base, "do": "save", QUEUE: "5"}).status_code == 400
    assert admin.post(PAGE, {"do": "save", QUEUE: "5"}).status_code == 400
    assert centralconfig.overrides() == {}


def test_hostile_values_are_escaped_and_cut(admin: Client, people: People) -> None:
    hostile = '"><script>alert(1)</script>'
    ConfigRecord.objects.create(key=TIMEOUT, value="60", updated_by=hostile)
    answer = send(admin, **{QUEUE: hostile + "x" * 5000, "key": hostile, "value": hostile})
    assert answer.status_code == 400
    assert b"<script>alert" not in answer.content
    assert b"&lt;script&gt;alert(1)" in answer.content
    assert b"x" * 200 not in answer.content
    page = admin.get(PAGE, {"q": hostile})
    assert b"<script>alert" not in page.content
    make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING)
    User.objects.filter(pk=people.owner.pk).update(username="<i>alice")
    assert b"&lt;i&gt;alice" in send(admin, **{TIMEOUT: "30"}).content


def test_search_hides_settings_but_keeps_them_in_the_form(admin: Client, people: People) -> None:
    change(SLOTS, "3", actor=people.admin)
    page = admin.get(PAGE, {"q": "slots queue", "changed": "on"})
    assert [row.setting.key for row in rows_of(page).values() if row.is_shown] == [SLOTS]
    assert f'name="{QUEUE}"' in text_of(page)
    assert 'action="/configuration/?q=slots+queue&changed=on"' in text_of(page)
    nothing = text_of(admin.get(PAGE, {"q": "nothing like this"}))
    assert '<p class="empty" id="settings-none" >' in nothing


def test_the_review_looks_as_stored(admin: Client, people: People) -> None:
    change(QUEUE, "500", actor=people.admin)
    make_execution(people.owner, make_project(people.owner), state=State.DEPLOYING)
    page = text_of(send(admin, **{TIMEOUT: "60", QUEUE: "", RAY_SWITCH: "off"}))
    lines = page.partition('<main id="main"')[2].partition("</main>")[0].splitlines()
    assert_golden("configuration-review", "\n".join(line for line in lines if "csrf" not in line))


def test_stored_key_of_earlier_version_is_refused_without_error(admin: Client) -> None:
    ConfigRecord.objects.create(namespace=centralconfig.NAMESPACE, key="no.longer.known", value="1")
    base = admin.get(PAGE).context["base"]
    assert "no.longer.known" not in base
    answer = admin.post(PAGE, {"base": base, "do": "review", "key": "no.longer.known", "value": "2"})
    assert answer.status_code == 400
