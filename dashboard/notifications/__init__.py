"""A person's notifications on pages: the bell, the list, and the choice of what is told by which channel.

It owns the webhook's form and the topics by which each open page follows its person. Others import `pages.bell` and, for the
account page, `notification_channels` and `records`.
"""

PUBLIC = ("notification_channels", "pages.bell", "pages.notifications", "records", "urls", "viewmodels.notifications")
