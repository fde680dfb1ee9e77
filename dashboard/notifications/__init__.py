"""A person's notifications on pages: the bell, the list, and the choice of what is told by which channel."""

PUBLIC = ("notification_channels", "pages.bell", "pages.notifications", "records", "urls", "viewmodels.notifications")
