"""What the platform promises, measured over its own metrics: service levels, the alerts on them, and files made from both; pure."""

from grid.servicelevels.levels import LEVELS, LevelTarget, ServiceLevel, default_targets, duration_words
from grid.servicelevels.status import LevelDay, LevelStatus, status_of

PUBLIC = ("files", "levels")

__all__ = [
    "LEVELS",
    "LevelDay",
    "LevelStatus",
    "LevelTarget",
    "ServiceLevel",
    "default_targets",
    "duration_words",
    "status_of",
]
