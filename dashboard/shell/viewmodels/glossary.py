"""The words of the house, each with the sentence that explains it: what a "?" beside a word opens, and the help page lists; pure."""

from collections.abc import Mapping

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _


class Term(ViewModel, frozen=True, gc=False):
    """A word with its meaning, for which the "?" beside it asks."""

    name: str
    meaning: str

    @property
    def question(self) -> str:
        return _("What does “{word}” mean?", word=self.name)


_WORK = {
    "execution": Term(
        _("Execution"),
        _("One run in the cluster, from its request to its end: of a workspace, a job, an app or a cluster."),
    ),
    "workspace": Term(
        _("Workspace"),
        _(
            "An IDE in the browser, such as JupyterLab, with its files and settings. You stop it and resume it; each start is "
            "a separate execution."
        ),
    ),
    "job": Term(
        _("Job"),
        _(
            "A command with its settings: environment, tier, variables, timeout, retries. It runs unattended, as often as you ask."
        ),
    ),
    "run": Term(_("Run"), _("One request to run a job. It records all its settings, and can be run again with them.")),
    "attempt": Term(
        _("Attempt"),
        _(
            "One try of a run, as a separate execution. A failed run is retried as often as its job says, with growing waits."
        ),
    ),
    "sweep": Term(
        _("Sweep"), _("Runs of one job that differ only in their parameters, one run for each line of a table.")
    ),
    "parameter": Term(
        _("Parameter"), _("A value of one run, which its command reads as an environment variable: $rate.")
    ),
    "metric": Term(
        _("Metric"),
        _(
            "A number that a job’s program measures, such as its loss, and writes as a line of JSON to its output. It is "
            "drawn over its steps."
        ),
    ),
    "schedule": Term(
        _("Schedule"), _("The times at which a job runs by itself: a cron expression in a time zone. You can pause it.")
    ),
    "app": Term(_("App"), _("A web page of your own that runs until somebody stops it.")),
    "cluster": Term(
        _("Cluster"),
        _("A Dask, Ray or Spark cluster on demand: one head, and a number of workers between a minimum and a maximum."),
    ),
    "attached-cluster": Term(
        _("Attached cluster"), _("A cluster that is launched with a workspace or a job, and ends together with it.")
    ),
    "head": Term(
        _("Head"), _("The pod that hands out a cluster’s work: Dask’s scheduler, Ray’s head, Spark’s master.")
    ),
    "worker": Term(
        _("Worker"),
        _(
            "A pod of a cluster that computes. Workers are added while there is work for them, and removed when there is less."
        ),
    ),
    "framework": Term(
        _("Framework"), _("What a cluster runs: Dask, Ray or Spark. Its version has to fit the program that uses it.")
    ),
}
_CHOICES = {
    "hardware-tier": Term(
        _("Hardware tier"),
        _("A size that an admin offers: cores, memory, GPUs, the node pool it runs in, and its price an hour."),
    ),
    "environment": Term(
        _("Environment"),
        _("The container image that your program runs in, with its tools; each is for certain kinds of execution."),
    ),
    "project": Term(
        _("Project"),
        _(
            "People, their executions and their files. Its owner and contributors launch in it; a viewer sees executions and logs."
        ),
    ),
    "secret": Term(
        _("Secret"),
        _(
            "A password or key that programs get as a variable or a file. It is stored encrypted, and no page shows its value again."
        ),
    ),
    "role": Term(
        _("Role"),
        _(
            "What somebody may do. A practitioner launches; an operator also watches the cluster and stops other people's "
            "executions; an admin also changes tiers, people and settings; an auditor only reads."
        ),
    ),
}
_LIMITS = {
    "slot": Term(
        _("Slot"),
        _(
            "What an execution takes of your quota: one for a workspace, a job or an app; for a cluster one for the head and "
            "one for each worker of its maximum."
        ),
    ),
    "quota": Term(_("Quota"), _("How many slots you may use at the same time. Further launches wait in the queue.")),
    "fit-card": Term(
        _("Fit card"),
        _(
            "The card beside the launch form: whether a launch would start now, need a new node, queue or never fit, and its "
            "price. It compares the tier with the nodes as they are; Kubernetes decides when it is launched."
        ),
    ),
    "dry-run": Term(
        _("Dry run"),
        _(
            "A try in which Kubernetes checks the objects of a launch, with all its quotas and rules, and creates none of them."
        ),
    ),
    "time-limits": Term(
        _("Time limits"),
        _(
            "How long an execution may wait in the queue, for a node, or for its program to answer. After that it ends as an "
            "error, and its page says why."
        ),
    ),
    "price": Term(
        _("Price"),
        _(
            "What a pod of this size costs in an hour. It is counted by the second while the pod holds a node: never while it "
            "waits in the queue or for a node."
        ),
    ),
    "budget": Term(
        _("Budget"),
        _(
            "What a project may spend in a calendar month. At its warning line its owner and the admins are told; at its stop "
            "line new launches are refused until the next month, or until an admin raises it."
        ),
    ),
    "core-hours": Term(
        _("Core hours"),
        _("Cores, multiplied by the hours for which they were held: 4 cores for half an hour are 2 core hours."),
    ),
    "gpu-hours": Term(
        _("GPU hours"), _("GPUs, multiplied by the hours for which they were held, whether a program used them or not.")
    ),
    "pod-hours": Term(
        _("Pod hours"), _("The hours for which pods held a node, added up. A cluster of 10 pods has 10 in an hour.")
    ),
}
_STATES = {
    "queued": Term(
        _("Queued"), _("It waits for a free slot: yours, one of its tier, or everybody’s. Users take turns.")
    ),
    "expected-wait": Term(
        _("Expected wait"),
        _(
            "An estimate of the time until an execution runs, from similar executions, the queue before it and the slots in "
            "use. Four of five executions should start within the range. With too little data there is no estimate."
        ),
    ),
    "held": Term(
        _("Held"),
        _(
            "An operator keeps it in the queue, for a reason that its page shows. It starts only after an operator releases it."
        ),
    ),
    "deploying": Term(_("Deploying"), _("It has its slots and waits for a node. A new node takes a few minutes.")),
    "preparing": Term(
        _("Preparing"), _("It is on a node: its image is pulled, its volumes are mounted, its program starts.")
    ),
    "start-up-phases": Term(
        _("Start-up phases"),
        _(
            "The parts of a start: the queue, the wait for a node, its files, its image, its program. Their times are shown "
            "beside the usual ones."
        ),
    ),
    "running": Term(_("Running"), _("Its program answers. You can open a workspace or an app now.")),
    "finishing": Term(_("Finishing"), _("Its program has ended; its log and files are being saved.")),
    "stopped": Term(_("Stopped"), _("Somebody stopped it. A stopped workspace keeps its files and can be resumed.")),
    "failed": Term(_("Failed"), _("Its program ended with an error. Its page says which, and what to do next.")),
    "error": Term(_("Error"), _("The platform could not run it, or it exceeded a time limit. Its page says why.")),
    "knowledge-base": Term(
        _("Knowledge base"),
        _(
            "Known lines of logs with what they mean and the usual cure. The end of a failed program’s log is searched for them."
        ),
    ),
    "start-up-time": Term(
        _("Start-up time"),
        _(
            "The time from an execution’s request until it runs: waiting for a slot and a node, pulling its image, starting it."
        ),
    ),
    "error-budget": Term(
        _("Error budget"),
        _(
            "How much may break a promise of the platform within its window: of 1,000 starts, of which 95 % are promised, 50. "
            "The burn rate is how many times faster than that it is used up."
        ),
    ),
    "knowledge-entry": Term(
        _("Knowledge entry"),
        _(
            "One known line: a pattern, what it means, the usual cure, and a link. Some are built in; admins add their own, "
            "and switch entries off."
        ),
    ),
    "idle": Term(_("Idle"), _("Nothing uses it: no program of a workspace runs, or a worker has no task.")),
}
_CLUSTER = {
    "node": Term(_("Node"), _("One machine of the Kubernetes cluster.")),
    "node-pool": Term(
        _("Node pool"),
        _(
            "Nodes of one kind. A tier names the pool that it runs in; an autoscaler may add nodes to it and remove them."
        ),
    ),
    "pod": Term(
        _("Pod"),
        _("What Kubernetes runs on a node for an execution. A cluster has one for its head and one for each worker."),
    ),
    "autoscaler": Term(
        _("Autoscaler"),
        _(
            "It adds nodes to a pool when pods find no room, and removes those that are not needed. A cluster has one for its workers."
        ),
    ),
    "requested": Term(
        _("Requested"),
        _("What pods have reserved of a node, used or not. A pod starts only where its request has room."),
    ),
    "used": Term(_("Used"), _("What programs use now, as measured on the nodes.")),
    "allocatable": Term(
        _("Allocatable"), _("What a node offers to pods: its cores and memory minus what its system reserves.")
    ),
    "cordoned": Term(_("Cordoned"), _("Somebody has closed the node to new pods. Running pods continue.")),
    "evicted": Term(
        _("Evicted"),
        _(
            "A pod was removed from its node to make room, or because the node is going away. Its execution’s page says what happens next."
        ),
    ),
}
# By the id of a heading: its title, and its words by the ids of their places.
GROUPS: Mapping[str, tuple[str, Mapping[str, Term]]] = {
    "work": (_("What you launch"), _WORK),
    "choices": (_("What you choose"), _CHOICES),
    "limits": (_("Limits and cost"), _LIMITS),
    "states": (_("The life of an execution"), _STATES),
    "cluster": (_("The machines"), _CLUSTER),
}
TERMS = {id: term for _title, terms in GROUPS.values() for id, term in terms.items()}
# The words that explain fields of forms, by the fields' names.
OF_FIELDS = {
    "node_pool": "node-pool",
    "cost_per_hour": "price",
    "framework": "framework",
    "project": "project",
    "environment": "environment",
    "tier": "hardware-tier",
    "role": "role",
}
