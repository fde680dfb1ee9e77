"""What people change, and whose data they take away, is in the audit log: each POST address leaves an entry or is exempt for a reason."""

from pathlib import Path
from typing import Any

import pytest

from grid.models import AuditEntry
from tests.access.table import Row
from tests.access.test_table import HTTP, built, short_refusals, world
from tests.access.world import REMOTE, World
from tests.files.test_remotes import HOST_KEY
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster

__all__ = ["built", "short_refusals", "world"]
TESTS = Path(__file__).parents[1]
POSTS = [row for row in HTTP if row.method == "POST"]
# Who posts what, beside what `World.body` says; each leaves an entry.
AUDITED: dict[str, tuple[str, dict[str, Any]]] = {
    "login": ("nobody", {}),
    "account": ("owner", {"name": "Another"}),
    "email-confirm": ("owner", {}),
    "email-cancel": ("owner", {}),
    "webhook": ("owner", {"url": "https://hooks.example.org/token"}),
    "notification-choices": ("owner", {"choice": ["started-in_page"]}),
    "queue-takeover": ("operator", {"do": "take", "minutes": "15", "reason": "Outage"}),
    "verbose-logs": ("operator", {"subject": "web", "reason": "Outage"}),
    "project-remote": (
        "lead",
        {"url": "https://git.example.com/a", "branch": "main", "username": "u", "secret": "kept-token"},
    ),
    "project-remote-confirm": ("lead", {"key": HOST_KEY, "url": REMOTE}),
    "project-remote-remove": ("lead", {}),
    "announcement-end": ("operator", {}),
    "rush-remove": ("operator", {}),
    "execution-support": ("operator", {}),
    "platform-support": ("operator", {}),
    "execution-share": ("owner", {}),
    "project-member": ("lead", {}),
    "project-secrets": ("member", {}),
    "project-secret-delete": ("member", {}),
    "announcement-new": ("operator", {}),
    **dict.fromkeys(("launch", "execution-stop", "execution-resize", "execution-restart-head"), ("owner", {})),
    **dict.fromkeys(("workspace-resume", "workspace-rename", "workspace-delete", "job-delete"), ("owner", {})),
    **dict.fromkeys(("schedule-pause", "schedule-delete", "secrets", "secret-delete"), ("owner", {})),
    **dict.fromkeys(
        ("tier-archive", "environment-archive", "project-archive", "knowledge-entry-archive"), ("admin", {})
    ),
    **dict.fromkeys(("configuration", "project-budget", "api-checks-run"), ("admin", {})),
    **dict.fromkeys(("person-role", "person-link", "person-deactivate", "person-sessions-end"), ("admin", {})),
}
# What needs more than a form to leave one: the tests that show it, below tests/.
SHOWN_BY = {
    "audit/test_audited_actions.py": (
        *("logout", "admin/logout/", "password", "session-end", "sessions-end-others", "job-edit", "schedule-new"),
        *("schedule-edit", "execution-open", "workspace-restart", "workspace-restart-cancel", "job-run", "job-sweep"),
        *("job-again", "job-stop", "jobs-stop", "executions-stop", "queue-cancel"),
    ),
    "notifications/test_notification_channels.py": ("webhook-remove", "notification-test", "executions-message"),
    "queue/test_queue_page.py": ("queue-order",),
    "queue/test_queue_several.py": ("queue-hold", "queue-release"),
    "workspaces/test_shutdown.py": ("execution-keep",),
    "sharing/test_portsharing.py": ("workspace-share", "workspace-unshare"),
    "alerts/test_alerts.py": ("alert-silence", "silence-end"),
    "nodes/test_draining.py": ("node-cordon", "node-mark", "node-drain"),
    "nodes/test_pool_history.py": ("pool-limits",),
    "tiers/test_administration_tiers.py": ("tier-new", "tier", "tier-revert", "environment-revert"),
    "administration/test_administration.py": (
        "environment-new",
        "environment",
        "project-new",
        "project",
        "project-settings",
        "project-revert",
    ),
    "logs/test_knowledge_pages.py": ("knowledge-entry-new", "knowledge-entry", "knowledge-entry-revert"),
    "environments/test_revisions.py": ("environment-revision-new", "environment-revision-deprecate"),
    "announcements/test_announcements.py": ("announcement",),
    "tiers/test_rush_pages.py": ("rush",),
    "accounts/test_lockouts.py": ("login-unlock",),
    "accounts/test_people.py": ("join", "person-invite", "person-activate"),
    "files/test_remotes_pages.py": ("project-push-again",),
}
EXEMPT = {
    "what it shows, and nothing else, is one's own": (
        *("notifications-read", "table-view", "first-steps-hide", "view-save", "view-default", "view-delete", "theme"),
        "announcement-hide",
    ),
    "it changes nothing": (
        *("launch-estimate", "launch-objects", "launch-check", "launch-choices", "schedule-check", "tier-new-check"),
        *("tier-check", "knowledge", "project-remote-test"),
    ),
    "the project's history says who, in a commit": ("project-upload", "project-file-delete", "project-file-move"),
    "what it asks for is recorded already": ("email-send-again",),
    "no person sends it": ("alerts-received",),
    "only the demonstration has it": ("demonstration-size", "demonstration-failure"),
}
# Files with other people's data: address, target, query, and who is given them.
EXPORTS = [
    ("usage-of-everybody", "", "", "operator"),
    ("person-usage", "owner", "", "auditor"),
    ("audit-export", "", "who=owner", "auditor"),
    ("startup", "", "", "operator"),
    ("execution-record", "run", "", "member"),
    ("execution-metrics", "run", "", "member"),
    ("execution-log", "workspace", "", "operator"),
    ("execution-lifecycle", "workspace", "", "auditor"),
    ("pod-log", "workspace", "", "operator"),
]


def test_post_leaves_audit_entry_or_has_reasoned_exemption() -> None:
    named = [*AUDITED, *(route for routes in (*SHOWN_BY.values(), *EXEMPT.values()) for route in routes)]
    assert sorted(named) == sorted({row.route for row in POSTS})
    for file in SHOWN_BY:
        assert "AuditEntry" in (TESTS / file).read_text(), file


@pytest.mark.parametrize("route", sorted(AUDITED))
def test_post_leaves_an_audit_entry(route: str, world: World, short_refusals: None) -> None:
    row = next(row for row in POSTS if row.route == route)
    role, fields = AUDITED[route]
    last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    answer = world.client(role).post(world.path(row), {**world.body(row), **fields})
    assert answer.status_code < 400
    entry = AuditEntry.objects.filter(pk__gt=last).first()
    assert entry is not None
    assert entry.actor_name == ("" if role == "nobody" else role)
    assert not any(secret in str(entry.changes) for secret in ("hooks.example.org/token", "kept-value", "kept-token"))


@pytest.mark.parametrize(("route", "target", "query", "role"), EXPORTS, ids=[export[0] for export in EXPORTS])
def test_export_leaves_an_entry_but_not_of_ones_own(
    route: str, target: str, query: str, role: str, world: World, cluster: FakeCluster
) -> None:
    path = f"{world.path(Row('GET', route, target, {}))}?download=1&{query}"
    cluster.set_log(world.executions["workspace"].object_name, ["a line"], namespace=NAMESPACE, container="run")
    before = downloads()
    assert world.client(role).get(path).status_code == 200
    assert [entry[0] for entry in downloads()[len(before) :]] == [role]
    assert target != "workspace" or downloads()[-1][1] == world.executions["workspace"].pk
    if target in world.executions:
        assert world.client("owner").get(path).status_code == 200
        assert len(downloads()) == len(before) + 1
    assert world.client("stranger").get(path).status_code in (403, 404)
    assert len(downloads()) == len(before) + 1


def test_ones_own_usage_is_no_export(world: World) -> None:
    assert world.client("owner").get("/usage/?download=1").status_code == 200
    assert world.client("owner").get(f"/usage/people/{world.people['owner'].pk}/?download=1").status_code == 200
    assert downloads() == []


def downloads() -> list[tuple[str, str]]:
    entries = AuditEntry.objects.filter(action=AuditEntry.Action.DOWNLOADED).order_by("pk")
    return list(entries.values_list("actor_name", "object_id"))
