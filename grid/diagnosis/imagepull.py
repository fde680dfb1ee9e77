"""What a launch's image adds to its start, in words; pure."""

from dataclasses import dataclass

from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import about


@dataclass(frozen=True, slots=True)
class ImagePull:
    """The pull of an image before a start: its size in bytes and the seconds that a pull of that size takes in this pool, None where that
    is not known. `is_missing` when none of the nodes that the launch may start on has it."""

    size: int | None = None
    seconds: float | None = None
    is_missing: bool = False

    def sentence(self, *, on_new_node: bool) -> str:
        """Return what the pull adds; "" when the image may be there, or nothing is known of a node that is still to be started."""
        image = _("Its image of {size}", size=format_bytes(self.size)) if self.size else _("Its image")
        takes = _("usually in about {seconds} here", seconds=about(self.seconds)) if self.seconds is not None else ""
        if on_new_node:
            return _("{image} is pulled on the new node, {time}.", image=image, time=takes) if takes else ""
        if not self.is_missing:
            return ""
        return _(
            "{image} is not on these nodes and is pulled first{time}.", image=image, time=f", {takes}" if takes else ""
        )
