"""The words of executions, choices and limits, each with the sentence that explains it; `glossary` has the rest; pure."""

from dataclasses import dataclass

from grid.core.translation import gettext as _


@dataclass(frozen=True, slots=True)
class Term:
    """A word with its meaning. `question` is what the "?" beside it asks."""

    id: str
    name: str
    question: str
    meaning: str


@dataclass(frozen=True, slots=True)
class TermGroup:
    id: str
    title: str
    terms: tuple[Term, ...]


OF_USERS = (
    TermGroup(
        "work",
        _("What you launch"),
        (
            Term(
                "execution",
                _("Execution"),
                _("What is an execution?"),
                _("One run in the cluster, from its request to its end: of a workspace, a job, an app or a cluster."),
            ),
            Term(
                "workspace",
                _("Workspace"),
                _("What is a workspace?"),
                _(
                    "An IDE in the browser, such as JupyterLab, with its files and settings. You stop it and resume it; each start is a "
                    "separate execution."
                ),
            ),
            Term(
                "job",
                _("Job"),
                _("What is a job?"),
                _(
                    "A command with its settings: environment, tier, variables, timeout, retries. It runs unattended, as often as you ask."
                ),
            ),
            Term(
                "run",
                _("Run"),
                _("What is a run?"),
                _("One request to run a job. It records all its settings, and can be run again with them."),
            ),
            Term(
                "attempt",
                _("Attempt"),
                _("What is an attempt?"),
                _(
                    "One try of a run, as a separate execution. A failed run is retried as often as its job says, with growing waits."
                ),
            ),
            Term(
                "sweep",
                _("Sweep"),
                _("What is a sweep?"),
                _("Runs of one job that differ only in their parameters, one run for each line of a table."),
            ),
            Term(
                "parameter",
                _("Parameter"),
                _("What is a parameter?"),
                _("A value of one run, which its command reads as an environment variable: $rate."),
            ),
            Term(
                "metric",
                _("Metric"),
                _("What is a metric?"),
                _(
                    "A number that a job’s program measures, such as its loss, and writes as a line of JSON to its "
                    "output. It is drawn over "
                    "its steps."
                ),
            ),
            Term(
                "schedule",
                _("Schedule"),
                _("What is a schedule?"),
                _("The times at which a job runs by itself: a cron expression in a time zone. You can pause it."),
            ),
            Term("app", _("App"), _("What is an app?"), _("A web page of your own that runs until somebody stops it.")),
            Term(
                "cluster",
                _("Cluster"),
                _("What is a cluster?"),
                _(
                    "A Dask, Ray or Spark cluster on demand: one head, and a number of workers between a minimum and a maximum."
                ),
            ),
            Term(
                "attached-cluster",
                _("Attached cluster"),
                _("What is an attached cluster?"),
                _("A cluster that is launched with a workspace or a job, and ends together with it."),
            ),
            Term(
                "head",
                _("Head"),
                _("What is a head?"),
                _("The pod that hands out a cluster’s work: Dask’s scheduler, Ray’s head, Spark’s master."),
            ),
            Term(
                "worker",
                _("Worker"),
                _("What is a worker?"),
                _(
                    "A pod of a cluster that computes. Workers are added while there is work for them, and removed when there is less."
                ),
            ),
            Term(
                "framework",
                _("Framework"),
                _("What is a framework?"),
                _("What a cluster runs: Dask, Ray or Spark. Its version has to fit the program that uses it."),
            ),
        ),
    ),
    TermGroup(
        "choices",
        _("What you choose"),
        (
            Term(
                "hardware-tier",
                _("Hardware tier"),
                _("What is a hardware tier?"),
                _("A size that an admin offers: cores, memory, GPUs, the node pool it runs in, and its price an hour."),
            ),
            Term(
                "environment",
                _("Environment"),
                _("What is an environment?"),
                _(
                    "The container image that your program runs in, with its tools; each is for certain kinds of execution."
                ),
            ),
            Term(
                "project",
                _("Project"),
                _("What is a project?"),
                _(
                    "People, their executions and their files. Its owner and contributors launch in it; a viewer sees executions and logs."
                ),
            ),
            Term(
                "secret",
                _("Secret"),
                _("What is a secret?"),
                _(
                    "A password or key that programs get as a variable or a file. It is stored encrypted, and no page "
                    "shows its value again."
                ),
            ),
            Term(
                "role",
                _("Role"),
                _("What is a role?"),
                _(
                    "What somebody may do. A practitioner launches; an operator also watches the cluster and stops other "
                    "people's executions; "
                    "an admin also changes tiers, people and settings; an auditor only reads."
                ),
            ),
        ),
    ),
    TermGroup(
        "limits",
        _("Limits and cost"),
        (
            Term(
                "slot",
                _("Slot"),
                _("What is a slot?"),
                _(
                    "What an execution takes of your quota: one for a workspace, a job or an app; for a cluster one for "
                    "the head and one for "
                    "each worker of its maximum."
                ),
            ),
            Term(
                "quota",
                _("Quota"),
                _("What is a quota?"),
                _("How many slots you may use at the same time. Further launches wait in the queue."),
            ),
            Term(
                "fit-card",
                _("Fit card"),
                _("What is a fit card?"),
                _(
                    "The card beside the launch form: whether a launch would start now, need a new node, queue or never "
                    "fit, and its price. "
                    "It compares the tier with the nodes as they are; Kubernetes decides when it is launched."
                ),
            ),
            Term(
                "dry-run",
                _("Dry run"),
                _("What is a dry run?"),
                _(
                    "A try in which Kubernetes checks the objects of a launch, with all its quotas and rules, and creates none of them."
                ),
            ),
            Term(
                "time-limits",
                _("Time limits"),
                _("What are time limits?"),
                _(
                    "How long an execution may wait in the queue, for a node, or for its program to answer. After that it ends as an "
                    "error, and its page says why."
                ),
            ),
            Term(
                "price",
                _("Price"),
                _("What does “price” mean?"),
                _(
                    "What a pod of this size costs in an hour. It is counted by the second while the pod holds a node: never while it "
                    "waits in the queue or for a node."
                ),
            ),
            Term(
                "budget",
                _("Budget"),
                _("What is a budget?"),
                _(
                    "What a project may spend in a calendar month. At its warning line its owner and the admins are "
                    "told; at its stop line new "
                    "launches are refused until the next month, or until an admin raises it."
                ),
            ),
            Term(
                "core-hours",
                _("Core hours"),
                _("What are core hours?"),
                _(
                    "Cores, multiplied by the hours for which they were held: 4 cores for half an hour are 2 core hours."
                ),
            ),
            Term(
                "gpu-hours",
                _("GPU hours"),
                _("What are GPU hours?"),
                _("GPUs, multiplied by the hours for which they were held, whether a program used them or not."),
            ),
            Term(
                "pod-hours",
                _("Pod hours"),
                _("What are pod hours?"),
                _("The hours for which pods held a node, added up. A cluster of 10 pods has 10 in an hour."),
            ),
        ),
    ),
)
