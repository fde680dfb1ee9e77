"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.kube`.
"""

from grid.models.announcement import Announcement, AnnouncementReader
from grid.models.audit import AuditChain, AuditEntry, ConfigRecord
from grid.models.dataplane import DataPlane
from grid.models.environment import Environment, EnvironmentRevision, Framework, Kind
from grid.models.execution import Execution, LifecycleEntry, State
from grid.models.job import Job, JobRun, RunSettings, Schedule
from grid.models.knowledge import KnowledgeEntry, LogOccurrence
from grid.models.launchcheck import CheckOutcome, LaunchCheck
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
from grid.models.platform import (
    Alert,
    AlertSilence,
    ApiCheckRun,
    NodeTask,
    PlatformIncident,
    PlatformReport,
    VerboseLogging,
)
from grid.models.pool import PoolSample, PoolTemplate
from grid.models.project import Membership, Project, RemoteRepository
from grid.models.recorded import (
    ClusterSample,
    ExecutionLog,
    MetricReading,
    PeakUse,
    RunFiles,
    RunMetric,
    ShippedLog,
    StopPlan,
)
from grid.models.secret import StoredSecret
from grid.models.share import AppShare, PortShare, WorkspaceGrant
from grid.models.startup import StartDay, StartUp
from grid.models.tier import HardwareTier, RushPlan
from grid.models.usage import BudgetMonth, DailyUsage, MonthlyUsage, ProjectBudget, UsageInterval
from grid.models.user import EmailChange, SavedView, Session, User
from grid.models.waiting import LastAdmission, QueueOrder, QueueTakeover, WaitPrediction
from grid.models.workspace import Workspace

PUBLIC = ("*",)
