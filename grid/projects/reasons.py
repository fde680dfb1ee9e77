"""What becomes of executions whose owner has left their project, in words."""

from datetime import timedelta

from grid.core.reasons import Reader, Sentence, Values
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.executions.stopping import ACCOUNT_CLOSED, LEFT_PROJECT, ONLY_VIEWS

_LOST = {
    LEFT_PROJECT: _("{name} has left the project {project}. It is stopped in {limit}, unless {name} is back by then."),
    ONLY_VIEWS: _(
        "{name} is a viewer of the project {project} now. It is stopped in {limit}, unless that is undone by then."
    ),
    ACCOUNT_CLOSED: _("The account of {name} was closed. It is stopped in {limit}, unless that is undone by then."),
}


def _lost(values: Values, reader: Reader) -> str:
    limit = duration(timedelta(seconds=values["seconds"]))
    return _LOST[values["why"]].format(name=values["name"], project=values["project"], limit=limit)


def _regained(values: Values, reader: Reader) -> str:
    name, project = values["name"], values["project"]
    return _("{name} has access to the project {project} again; it continues.", name=name, project=project)


SENTENCES: dict[str, Sentence] = {"AccessLost": _lost, "AccessRegained": _regained}
