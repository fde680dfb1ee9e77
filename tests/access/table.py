"""Who gets which answer: every page, form and websocket by every role, and what the proxy lets through. `test_table` and `test_proxy`
ask each of them, and fail for an address or a method that has no row in `answers.txt`.

Roles: nobody is logged in as `nobody`; `owner` has launched the executions named workspace and cluster in a project that `lead` owns,
`member` contributes to and `viewer` only looks at; `former` was a member too and has launched left-workspace and left-cluster;
`viewer` contributed once and has launched viewed-workspace and viewed-cluster; what is named notebook is a stopped workspace of the
same three people; app is the owner's, shared with viewer and, before he left, former; so is shared-port,
a port of workspace, and left-port is one of left-workspace, shared with viewer; training is a job of the owner's; run and
left-run are runs of jobs that owner and former have launched, with records and results; owners-view and
owners-secret are his, too; a `stranger` has nothing to do with it;
`invited` has a link and no password yet; asked-for is the link by which owner confirms a new e-mail address, which everybody has opened;
an `auditor` sees everything and does nothing. Answers: a status, `login` for a way to the login page (by a redirect; of a websocket, a
goodbye that says so), `open` or `refused` for a websocket, `in` for whatever Django's admin answers to an admin. 422 and 400 refuse a
form, not a person.

What begins with `proxy:` is asked of the proxy, on the origin of the execution or, without one, of all of them. There everybody but
nobody holds a secret, as if it were left over from a time when he might open it; the execution's program answers 200, and `auth` an
ingress that asks whether the request may go straight there.
"""

from dataclasses import dataclass
from pathlib import Path

ROLES = ("nobody", "owner", "lead", "member", "viewer", "former", "stranger", "auditor", "operator", "admin")

PROXY = "proxy:"

TABLE = Path(__file__).with_name("answers.txt").read_text()


@dataclass(frozen=True, slots=True)
class Row:
    """`route` is the name of an address, its path where it has no name, or `namespace:*` for the rest of a namespace."""

    method: str
    route: str
    target: str
    answers: dict[str, str]

    def __str__(self) -> str:
        return " ".join(filter(None, (self.method, self.route, self.target)))


def rows(table: str = TABLE) -> list[Row]:
    """What has no target has one column less before the answers."""
    header, *lines = [line.split() for line in table.splitlines() if line.strip()]
    assert tuple(header) == ROLES
    return [_row(line) for line in lines]


def _row(line: list[str]) -> Row:
    method, route, *rest = line
    target, answers = rest[: -len(ROLES)], rest[-len(ROLES) :]
    assert len(target) <= 1, line
    return Row(method, route, "".join(target), dict(zip(ROLES, answers, strict=True)))


ROWS = rows()
