"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.kube`.
"""

from grid.models.announcement import Announcement as Announcement, AnnouncementReader as AnnouncementReader
from grid.models.audit import AuditChain as AuditChain, AuditEntry as AuditEntry, ConfigRecord as ConfigRecord
from grid.models.dataplane import DataPlane as DataPlane
from grid.models.environment import (
    Environment as Environment,
    EnvironmentRevision as EnvironmentRevision,
    Framework as Framework,
    Kind as Kind,
)
from grid.models.execution import Execution as Execution, LifecycleEntry as LifecycleEntry, State as State
from grid.models.job import Job as Job, JobRun as JobRun, RunSettings as RunSettings, Schedule as Schedule
from grid.models.knowledge import KnowledgeEntry as KnowledgeEntry, LogOccurrence as LogOccurrence
from grid.models.launchcheck import CheckOutcome as CheckOutcome, LaunchCheck as LaunchCheck
from grid.models.notification import (
    ContentionNotice as ContentionNotice,
    Delivery as Delivery,
    Notification as Notification,
    NotificationChoice as NotificationChoice,
    NotificationEvent as NotificationEvent,
    QueueNotice as QueueNotice,
    StopWarning as StopWarning,
    WebhookTarget as WebhookTarget,
)
from grid.models.platform import (
    Alert as Alert,
    AlertSilence as AlertSilence,
    ApiCheckRun as ApiCheckRun,
    NodeTask as NodeTask,
    PlatformIncident as PlatformIncident,
    PlatformReport as PlatformReport,
    VerboseLogging as VerboseLogging,
)
from grid.models.pool import PoolSample as PoolSample, PoolTemplate as PoolTemplate
from grid.models.project import Membership as Membership, Project as Project, RemoteRepository as RemoteRepository
from grid.models.recorded import (
    ClusterSample as ClusterSample,
    ExecutionLog as ExecutionLog,
    MetricReading as MetricReading,
    PeakUse as PeakUse,
    RunFiles as RunFiles,
    RunMetric as RunMetric,
    ShippedLog as ShippedLog,
    StopPlan as StopPlan,
)
from grid.models.secret import StoredSecret as StoredSecret
from grid.models.share import AppShare as AppShare, PortShare as PortShare, WorkspaceGrant as WorkspaceGrant
from grid.models.startup import StartDay as StartDay, StartUp as StartUp
from grid.models.tier import HardwareTier as HardwareTier, RushPlan as RushPlan
from grid.models.usage import (
    BudgetMonth as BudgetMonth,
    DailyUsage as DailyUsage,
    ProjectBudget as ProjectBudget,
    UsageInterval as UsageInterval,
)
from grid.models.user import EmailChange as EmailChange, SavedView as SavedView, Session as Session, User as User
from grid.models.waiting import (
    LastAdmission as LastAdmission,
    QueueOrder as QueueOrder,
    QueueTakeover as QueueTakeover,
    WaitPrediction as WaitPrediction,
)
from grid.models.workspace import Workspace as Workspace

PUBLIC = ("*",)
