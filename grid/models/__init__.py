"""The tables of what people decide: tiers, environments, projects, settings, requested executions and their history.

Live state is Kubernetes' and is never stored here; see `grid.kube`.
"""

from grid.models.admission import LastAdmission as LastAdmission
from grid.models.alert import Alert as Alert
from grid.models.alert import AlertSilence as AlertSilence
from grid.models.announcement import Announcement as Announcement
from grid.models.announcement import AnnouncementReader as AnnouncementReader
from grid.models.audit import AuditChain as AuditChain
from grid.models.audit import AuditEntry as AuditEntry
from grid.models.budget import BudgetMonth as BudgetMonth
from grid.models.budget import ProjectBudget as ProjectBudget
from grid.models.configuration import ConfigRecord as ConfigRecord
from grid.models.dataplane import DataPlane as DataPlane
from grid.models.environment import Environment as Environment
from grid.models.environment import EnvironmentRevision as EnvironmentRevision
from grid.models.environment import Framework as Framework
from grid.models.environment import Kind as Kind
from grid.models.execution import Execution as Execution
from grid.models.execution import LifecycleEntry as LifecycleEntry
from grid.models.execution import State as State
from grid.models.grant import WorkspaceGrant as WorkspaceGrant
from grid.models.job import Job as Job
from grid.models.job import JobRun as JobRun
from grid.models.job import RunSettings as RunSettings
from grid.models.knowledge import KnowledgeEntry as KnowledgeEntry
from grid.models.knowledge import LogOccurrence as LogOccurrence
from grid.models.launchcheck import CheckOutcome as CheckOutcome
from grid.models.launchcheck import LaunchCheck as LaunchCheck
from grid.models.log import ExecutionLog as ExecutionLog
from grid.models.log import ShippedLog as ShippedLog
from grid.models.metric import MetricReading as MetricReading
from grid.models.metric import RunMetric as RunMetric
from grid.models.nodetask import NodeTask as NodeTask
from grid.models.notification import ContentionNotice as ContentionNotice
from grid.models.notification import Delivery as Delivery
from grid.models.notification import Notification as Notification
from grid.models.notification import NotificationChoice as NotificationChoice
from grid.models.notification import NotificationEvent as NotificationEvent
from grid.models.notification import QueueNotice as QueueNotice
from grid.models.notification import StopWarning as StopWarning
from grid.models.notification import WebhookTarget as WebhookTarget
from grid.models.peakuse import PeakUse as PeakUse
from grid.models.platform import ApiCheckRun as ApiCheckRun
from grid.models.platform import PlatformIncident as PlatformIncident
from grid.models.platform import PlatformReport as PlatformReport
from grid.models.pool import PoolSample as PoolSample
from grid.models.pool import PoolTemplate as PoolTemplate
from grid.models.project import Membership as Membership
from grid.models.project import Project as Project
from grid.models.remote import RemoteRepository as RemoteRepository
from grid.models.runfiles import RunFiles as RunFiles
from grid.models.rush import RushPlan as RushPlan
from grid.models.sample import ClusterSample as ClusterSample
from grid.models.savedview import SavedView as SavedView
from grid.models.schedule import Schedule as Schedule
from grid.models.secret import StoredSecret as StoredSecret
from grid.models.share import AppShare as AppShare
from grid.models.share import PortShare as PortShare
from grid.models.shutdown import StopPlan as StopPlan
from grid.models.startday import StartDay as StartDay
from grid.models.startup import StartUp as StartUp
from grid.models.takeover import QueueTakeover as QueueTakeover
from grid.models.tier import HardwareTier as HardwareTier
from grid.models.usage import DailyUsage as DailyUsage
from grid.models.usage import UsageInterval as UsageInterval
from grid.models.user import EmailChange as EmailChange
from grid.models.user import Session as Session
from grid.models.user import User as User
from grid.models.verboselogging import VerboseLogging as VerboseLogging
from grid.models.waiting import QueueOrder as QueueOrder
from grid.models.waiting import WaitPrediction as WaitPrediction
from grid.models.workspace import Workspace as Workspace

PUBLIC = ("*",)
