"""The central configuration: every key with its type, unit, default, bounds and meaning, and the value now in force.

Overrides are stored in the database and read at each use, so a change is in force at once in every process; what is read
is one row. The keys of the seed documents keep their names; keys of our own follow the same style.
"""

from grid.centralconfig.clusters import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, ClusterPolicy
from grid.centralconfig.general import (
    ACCESS_LOST_TIMEOUT,
    DEPLOYING_TIMEOUT,
    GLOBAL_QUEUE_LIMIT,
    HOME_VOLUME_SIZE,
    LOGIN_COOL_OFF,
    LOGIN_FAILURES_AT_ADDRESS,
    LOGIN_FAILURES_OF_ADDRESS,
    LOGIN_FAILURES_OF_NAME,
    MAXIMUM_EXECUTIONS_PER_USER,
    OVER_QUOTA_TIMEOUT,
    PREPARING_TIMEOUT,
    SESSION_ABSOLUTE,
    SESSION_IDLE,
    UNNEEDED_SECONDS,
    UNNEEDED_THRESHOLD,
)
from grid.centralconfig.retention import (
    AUDIT_RETENTION,
    EXECUTION_RETENTION,
    GRANT_LONGEST_DAYS,
    GRANT_RETENTION,
    LIFECYCLE_RETENTION,
    LOG_RETENTION,
    SAMPLE_RETENTION,
)
from grid.centralconfig.setting import Setting
from grid.centralconfig.store import (
    NAMESPACE,
    REGISTRY,
    ChangedMeanwhile,
    SettingChange,
    all_values,
    apply,
    cluster_policy,
    overrides,
    plan,
    value_of,
    values_of,
    values_with,
)

__all__ = [
    "ACCESS_LOST_TIMEOUT",
    "AUDIT_RETENTION",
    "CLUSTER_SETTINGS",
    "DEPLOYING_TIMEOUT",
    "EXECUTION_RETENTION",
    "FRAMEWORK_SETTINGS",
    "GLOBAL_QUEUE_LIMIT",
    "GRANT_LONGEST_DAYS",
    "GRANT_RETENTION",
    "HOME_VOLUME_SIZE",
    "LIFECYCLE_RETENTION",
    "LOGIN_COOL_OFF",
    "LOGIN_FAILURES_AT_ADDRESS",
    "LOGIN_FAILURES_OF_ADDRESS",
    "LOGIN_FAILURES_OF_NAME",
    "LOG_RETENTION",
    "MAXIMUM_EXECUTIONS_PER_USER",
    "NAMESPACE",
    "OVER_QUOTA_TIMEOUT",
    "PREPARING_TIMEOUT",
    "REGISTRY",
    "SAMPLE_RETENTION",
    "SESSION_ABSOLUTE",
    "SESSION_IDLE",
    "UNNEEDED_SECONDS",
    "UNNEEDED_THRESHOLD",
    "ChangedMeanwhile",
    "ClusterPolicy",
    "Setting",
    "SettingChange",
    "all_values",
    "apply",
    "cluster_policy",
    "overrides",
    "plan",
    "value_of",
    "values_of",
    "values_with",
]
