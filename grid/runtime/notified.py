"""The hub's topics of notifications: one for each person, and one that stands for everybody, when the feed cannot say whose changed."""

from grid.kube.hub import Topic


def notified(person: str = "") -> Topic:
    """Return the topic of a person's notifications, by the id; without one, that of everybody's."""
    return ("notifications", "person", person)
