"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.kube`.
"""

from grid.models.admission import LastAdmission
from grid.models.alert import Alert, AlertSilence
from grid.models.announcement import Announcement, AnnouncementReader
from grid.models.audit import AuditChain, AuditEntry
from grid.models.budget import BudgetMonth, ProjectBudget
from grid.models.configuration import ConfigRecord
from grid.models.dataplane import DataPlane
from grid.models.environment import Environment, EnvironmentRevision, Framework, Kind
from grid.models.execution import Execution, LifecycleEntry, State
from grid.models.grant import WorkspaceGrant
from grid.models.job import Job, JobRun, RunSettings
from grid.models.knowledge import KnowledgeEntry, LogOccurrence
from grid.models.launchcheck import CheckOutcome, LaunchCheck
from grid.models.log import ExecutionLog, ShippedLog
from grid.models.metric import MetricReading, RunMetric
from grid.models.nodetask import NodeTask
from grid.models.notification import (
    ContentionNotice,
    Delivery,
    Notification,
    NotificationChoice,
    NotificationEvent,
    QueueNotice,
    StopWarning,
    WebhookTarget,
)
from grid.models.peakuse import PeakUse
from grid.models.platform import ApiCheckRun, PlatformIncident, PlatformReport
from grid.models.pool import PoolSample, PoolTemplate
from grid.models.project import Membership, Project
from grid.models.remote import RemoteRepository
from grid.models.runfiles import RunFiles
from grid.models.rush import RushPlan
from grid.models.sample import ClusterSample
from grid.models.savedview import SavedView
from grid.models.schedule import Schedule
from grid.models.secret import StoredSecret
from grid.models.share import AppShare, PortShare
from grid.models.shutdown import StopPlan
from grid.models.startday import StartDay
from grid.models.startup import StartUp
from grid.models.takeover import QueueTakeover
from grid.models.tier import HardwareTier
from grid.models.usage import DailyUsage, UsageInterval
from grid.models.user import EmailChange, Session, User
from grid.models.verboselogging import VerboseLogging
from grid.models.waiting import QueueOrder, WaitPrediction
from grid.models.workspace import Workspace

PUBLIC = ("*",)

__all__ = [
    "Alert",
    "AlertSilence",
    "Announcement",
    "AnnouncementReader",
    "ApiCheckRun",
    "AppShare",
    "AuditChain",
    "AuditEntry",
    "BudgetMonth",
    "CheckOutcome",
    "ClusterSample",
    "ConfigRecord",
    "ContentionNotice",
    "DailyUsage",
    "DataPlane",
    "Delivery",
    "EmailChange",
    "Environment",
    "EnvironmentRevision",
    "Execution",
    "ExecutionLog",
    "Framework",
    "HardwareTier",
    "Job",
    "JobRun",
    "Kind",
    "KnowledgeEntry",
    "LastAdmission",
    "LaunchCheck",
    "LifecycleEntry",
    "LogOccurrence",
    "Membership",
    "MetricReading",
    "NodeTask",
    "Notification",
    "NotificationChoice",
    "NotificationEvent",
    "PeakUse",
    "PlatformIncident",
    "PlatformReport",
    "PoolSample",
    "PoolTemplate",
    "PortShare",
    "Project",
    "ProjectBudget",
    "QueueNotice",
    "QueueOrder",
    "QueueTakeover",
    "RemoteRepository",
    "RunFiles",
    "RunMetric",
    "RunSettings",
    "RushPlan",
    "SavedView",
    "Schedule",
    "Session",
    "ShippedLog",
    "StartDay",
    "StartUp",
    "State",
    "StopPlan",
    "StopWarning",
    "StoredSecret",
    "UsageInterval",
    "User",
    "VerboseLogging",
    "WaitPrediction",
    "WebhookTarget",
    "Workspace",
    "WorkspaceGrant",
]
