"""The URLs of one kind of object that admins edit, for the room of that kind."""

from typing import Any

from django.urls import URLPattern

from dashboard.administration import views
from dashboard.shell.routes import path


def catalogue(
    catalogue: views.EditedKind,
    listing: Any = views.catalogue_list,
    editing: Any = views.catalogue_edit,
    archiving: Any = views.catalogue_archive,
    *,
    editing_at: str = "",
) -> list[URLPattern]:
    """Return the URLs of one kind of object that admins edit; others than admins get something from `listing` and `editing` alone. The
    form is at the object's own URL, or `editing_at` below it."""
    root, name, extra = catalogue.name, catalogue.singular, {"catalogue": catalogue}
    return [
        path(f"{root}/", listing, extra, name=root),
        path(f"{root}/new/", views.catalogue_edit, extra, name=f"{name}-new"),
        path(f"{root}/<name:id>/{editing_at}", editing, extra, name=catalogue.form_name),
        path(f"{root}/<name:id>/archive/", archiving, extra, name=f"{name}-archive"),
        path(f"{root}/<name:id>/take-back/<int:entry_id>/", views.catalogue_revert, extra, name=f"{name}-revert"),
    ]
