"""The frame that every page stands in, and what all pages are made with: live pages, lists, tables, form fields, formats, help.

It owns access rules (`access`), middleware, the websocket of live pages and their sharing of the event loop (`pages`), and the common
view-models and fragments. All rooms may import it; it knows none of them.
"""

PUBLIC = (
    "access", "archiving", "exports", "forms.fields", "fragments", "middleware", "pages.lists", "pages.live", "pages.page",
    "pages.periodic", "pages.slices", "routes", "tags.frame", "urls", "viewmodels.charts", "viewmodels.events",
    "viewmodels.format", "viewmodels.freshness", "viewmodels.listing", "viewmodels.live", "viewmodels.states", "viewmodels.saved_views",
    "viewmodels.window", "views.fetching", "views.live", "views.preferences", "views.saved_views",
)  # fmt: skip
