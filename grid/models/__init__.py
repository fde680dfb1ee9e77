"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.kube`.
"""

from grid.models.announcement import Announcement as Announcement
from grid.models.announcement import AnnouncementReader as AnnouncementReader
from grid.models.audit import AuditChain as AuditChain
from grid.models.audit import AuditEntry as AuditEntry
from grid.models.audit import ConfigRecord as ConfigRecord
from grid.models.dataplane import DataPlane as DataPlane
from grid.models.environment import Environment as Environment
from grid.models.environment import EnvironmentRevision as EnvironmentRevision
from grid.models.environment import Framework as Framework
from grid.models.environment import Kind as Kind
from grid.models.execution import Execution as Execution
from grid.models.execution import LifecycleEntry as LifecycleEntry
from grid.models.execution import State as State
from grid.models.job import Job as Job
from grid.models.job import JobRun as JobRun
from grid.models.job import RunSettings as RunSettings
from grid.models.job import Schedule as Schedule
from grid.models.knowledge import KnowledgeEntry as KnowledgeEntry
from grid.models.knowledge import LogOccurrence as LogOccurrence
from grid.models.launchcheck import CheckOutcome as CheckOutcome
from grid.models.launchcheck import LaunchCheck as LaunchCheck
from grid.models.notification import ContentionNotice as ContentionNotice
from grid.models.notification import Delivery as Delivery
from grid.models.notification import Notification as Notification
from grid.models.notification import NotificationChoice as NotificationChoice
from grid.models.notification import NotificationEvent as NotificationEvent
from grid.models.notification import QueueNotice as QueueNotice
from grid.models.notification import StopWarning as StopWarning
from grid.models.notification import WebhookTarget as WebhookTarget
from grid.models.platform import Alert as Alert
from grid.models.platform import AlertSilence as AlertSilence
from grid.models.platform import ApiCheckRun as ApiCheckRun
from grid.models.platform import NodeTask as NodeTask
from grid.models.platform import PlatformIncident as PlatformIncident
from grid.models.platform import PlatformReport as PlatformReport
from grid.models.platform import VerboseLogging as VerboseLogging
from grid.models.pool import PoolSample as PoolSample
from grid.models.pool import PoolTemplate as PoolTemplate
from grid.models.project import Membership as Membership
from grid.models.project import Project as Project
from grid.models.project import RemoteRepository as RemoteRepository
from grid.models.recorded import ClusterSample as ClusterSample
from grid.models.recorded import ExecutionLog as ExecutionLog
from grid.models.recorded import MetricReading as MetricReading
from grid.models.recorded import PeakUse as PeakUse
from grid.models.recorded import RunFiles as RunFiles
from grid.models.recorded import RunMetric as RunMetric
from grid.models.recorded import ShippedLog as ShippedLog
from grid.models.recorded import StopPlan as StopPlan
from grid.models.secret import StoredSecret as StoredSecret
from grid.models.share import AppShare as AppShare
from grid.models.share import PortShare as PortShare
from grid.models.share import WorkspaceGrant as WorkspaceGrant
from grid.models.startup import StartDay as StartDay
from grid.models.startup import StartUp as StartUp
from grid.models.tier import HardwareTier as HardwareTier
from grid.models.tier import RushPlan as RushPlan
from grid.models.usage import BudgetMonth as BudgetMonth
from grid.models.usage import DailyUsage as DailyUsage
from grid.models.usage import ProjectBudget as ProjectBudget
from grid.models.usage import UsageInterval as UsageInterval
from grid.models.user import EmailChange as EmailChange
from grid.models.user import SavedView as SavedView
from grid.models.user import Session as Session
from grid.models.user import User as User
from grid.models.waiting import LastAdmission as LastAdmission
from grid.models.waiting import QueueOrder as QueueOrder
from grid.models.waiting import QueueTakeover as QueueTakeover
from grid.models.waiting import WaitPrediction as WaitPrediction
from grid.models.workspace import Workspace as Workspace

PUBLIC = ("*",)
