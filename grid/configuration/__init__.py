"""The central configuration: every key with its type, unit, default, bounds and meaning, and the value now in force.

Overrides are stored in the database and read at each use, so a change is in force at once in every process; what is read
is one row. The keys of the seed documents keep their names; keys of our own follow the same style. Other rooms import each setting, the
values in force, and what plans and stores changes.
"""

# Every setting of the files with a star may be imported from here, so that its name is written once, where it is declared.
# ruff: noqa: F403, I001
from grid.configuration.clusters import (
    CLUSTER_SETTINGS as CLUSTER_SETTINGS,
    FRAMEWORK_SETTINGS as FRAMEWORK_SETTINGS,
    ClusterPolicy as ClusterPolicy,
)
from grid.configuration.general import *
from grid.configuration.retention import *
from grid.configuration.servicelevels import (
    LEVEL_WINDOW as LEVEL_WINDOW,
    SERVICE_LEVEL_SETTINGS as SERVICE_LEVEL_SETTINGS,
)
from grid.configuration.setting import Setting as Setting, SettingTopic as SettingTopic
from grid.configuration.shares import *
from grid.configuration.shutdown import *
from grid.configuration.store import (
    NAMESPACE as NAMESPACE,
    REGISTRY as REGISTRY,
    ChangedMeanwhile as ChangedMeanwhile,
    SettingChange as SettingChange,
    all_values as all_values,
    apply as apply,
    cluster_policy as cluster_policy,
    overrides as overrides,
    plan as plan,
    service_level_targets as service_level_targets,
    value_of as value_of,
    values_of as values_of,
    values_with as values_with,
)

PUBLIC = ("setting",)
