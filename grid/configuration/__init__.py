"""The central configuration: every key with its type, unit, default, bounds and meaning, and the value now in force.

Overrides are stored in the database and read at each use, so a change is in force at once in every process; what is read
is one row. The keys of the seed documents keep their names; keys of our own follow the same style. Other rooms import each setting, the
values in force, and what plans and stores changes.
"""

# What the files with a star declare may be imported from here, so that its name is written once, where it is declared.
# ruff: noqa: F403
from grid.configuration.clusters import *
from grid.configuration.general import *
from grid.configuration.lifetimes import *
from grid.configuration.servicelevels import (
    LEVEL_WINDOW as LEVEL_WINDOW,
    SERVICE_LEVEL_SETTINGS as SERVICE_LEVEL_SETTINGS,
)
from grid.configuration.setting import Setting as Setting, SettingTopic as SettingTopic
from grid.configuration.store import *

PUBLIC = ("setting",)
