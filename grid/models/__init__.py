"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.watch`.
"""

from grid.models.admission import LastAdmission
from grid.models.audit import AuditEntry
from grid.models.configuration import ConfigRecord
from grid.models.dataplane import DataPlane
from grid.models.environment import Environment, Framework, Kind
from grid.models.execution import ClusterSample, Execution, ExecutionLog, LifecycleEntry, State
from grid.models.grant import WorkspaceGrant
from grid.models.project import Membership, Project
from grid.models.session import Session
from grid.models.tier import HardwareTier
from grid.models.usage import DailyUsage, UsageInterval
from grid.models.user import User
from grid.models.workspace import Workspace

__all__ = [
    "AuditEntry",
    "ClusterSample",
    "ConfigRecord",
    "DailyUsage",
    "DataPlane",
    "Environment",
    "Execution",
    "ExecutionLog",
    "Framework",
    "HardwareTier",
    "Kind",
    "LastAdmission",
    "LifecycleEntry",
    "Membership",
    "Project",
    "Session",
    "State",
    "UsageInterval",
    "User",
    "Workspace",
    "WorkspaceGrant",
]
