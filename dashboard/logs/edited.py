"""The entries of the knowledge base as admins edit them."""

from dashboard.administration.views.edited_kinds import EditedKind
from dashboard.logs.forms import KnowledgeForm
from grid.core.translation import gettext as _
from grid.models import KnowledgeEntry

KNOWLEDGE = EditedKind(
    "knowledge",
    "knowledge-entry",
    _("Knowledge base"),
    KnowledgeEntry,
    KnowledgeForm,
    _("Known lines in the logs of failed programs: what they mean, and the usual cure."),
    _("New entry"),
    _("Archive the entry {name}?"),
    while_archived=_("no log is searched for it"),
)
