"""Changes a setting as the configuration page does, without the page."""

from grid import configuration as centralconfig
from grid.models import User


def change(key: str, text: str, *, actor: User) -> None:
    """`text` is what an admin types; "" goes back to the default."""
    centralconfig.apply(centralconfig.plan({key: text}, centralconfig.overrides()), actor=actor)


def reset(key: str, *, actor: User) -> None:
    change(key, "", actor=actor)
