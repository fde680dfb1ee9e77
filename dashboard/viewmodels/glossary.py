"""The words of the house, each with the sentence that explains it: what a "?" beside a word opens, and the help page lists; pure."""

from dataclasses import dataclass


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


def _thing(name: str, meaning: str) -> Term:
    article = "an" if name[0] in "AEIOU" else "a"
    return Term(_id(name), name, f"What is {article} {name[0].lower()}{name[1:]}?", meaning)


def _things(name: str, meaning: str) -> Term:
    return Term(_id(name), name, f"What are {name[0].lower()}{name[1:]}?", meaning)


def _word(name: str, meaning: str) -> Term:
    return Term(_id(name), name, f"What does “{name.lower()}” mean?", meaning)


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")


GROUPS = (
    TermGroup(
        "work",
        "What you launch",
        (
            _thing(
                "Execution",
                "One run in the cluster, from its request to its end: of a workspace, a job, an app or a cluster.",
            ),
            _thing(
                "Workspace",
                "An IDE in the browser, such as JupyterLab, with its files and settings. You stop it and resume it; each start is a "
                "separate execution.",
            ),
            _thing(
                "Job",
                "A command with its settings: environment, tier, variables, timeout, retries. It runs unattended, as often as you ask.",
            ),
            _thing(
                "Run",
                "One request to run a job. It records all its settings, and can be run again with them.",
            ),
            _thing(
                "Attempt",
                "One try of a run, as a separate execution. A failed run is retried as often as its job says, with growing waits.",
            ),
            _thing("Sweep", "Runs of one job that differ only in their parameters, one run for each line of a table."),
            _thing("Parameter", "A value of one run, which its command reads as an environment variable: $rate."),
            _thing(
                "Metric",
                "A number that a job’s program measures, such as its loss, and writes as a line of JSON to its output. It is drawn over "
                "its steps.",
            ),
            _thing(
                "Schedule",
                "The times at which a job runs by itself: a cron expression in a time zone. You can pause it.",
            ),
            _thing("App", "A web page of your own that runs until somebody stops it."),
            _thing(
                "Cluster",
                "A Dask, Ray or Spark cluster on demand: one head, and a number of workers between a minimum and a maximum.",
            ),
            _thing(
                "Attached cluster", "A cluster that is launched with a workspace or a job, and ends together with it."
            ),
            _thing("Head", "The pod that hands out a cluster’s work: Dask’s scheduler, Ray’s head, Spark’s master."),
            _thing(
                "Worker",
                "A pod of a cluster that computes. Workers are added while there is work for them, and removed when there is less.",
            ),
            _thing(
                "Framework", "What a cluster runs: Dask, Ray or Spark. Its version has to fit the program that uses it."
            ),
        ),
    ),
    TermGroup(
        "choices",
        "What you choose",
        (
            _thing(
                "Hardware tier",
                "A size that an admin offers: cores, memory, GPUs, the node pool it runs in, and its price an hour.",
            ),
            _thing(
                "Environment",
                "The container image that your program runs in, with its tools; each is for certain kinds of execution.",
            ),
            _thing(
                "Project",
                "People, their executions and their files. Its owner and contributors launch in it; a viewer sees executions and logs.",
            ),
            _thing(
                "Secret",
                "A password or key that programs get as a variable or a file. It is stored encrypted, and no page shows its value again.",
            ),
            _thing(
                "Role",
                "What somebody may do. A practitioner launches; an operator also watches the cluster and stops other people's executions; "
                "an admin also changes tiers, people and settings; an auditor only reads.",
            ),
        ),
    ),
    TermGroup(
        "limits",
        "Limits and cost",
        (
            _thing(
                "Slot",
                "What an execution takes of your quota: one for a workspace, a job or an app; for a cluster one for the head and one for "
                "each worker of its maximum.",
            ),
            _thing("Quota", "How many slots you may use at the same time. Further launches wait in the queue."),
            _thing(
                "Fit card",
                "The card beside the launch form: whether a launch would start now, need a new node, queue or never fit, and its price. "
                "It compares the tier with the nodes as they are; Kubernetes decides when it is launched.",
            ),
            _thing(
                "Dry run",
                "A try in which Kubernetes checks the objects of a launch, with all its quotas and rules, and creates none of them.",
            ),
            _things(
                "Time limits",
                "How long an execution may wait in the queue, for a node, or for its program to answer. After that it ends as an "
                "error, and its page says why.",
            ),
            _word(
                "Price",
                "What a pod of this size costs in an hour. It is counted by the second while the pod holds a node: never while it "
                "waits in the queue or for a node.",
            ),
            _thing(
                "Budget",
                "What a project may spend in a calendar month. At its warning line its owner and the admins are told; at its stop line new "
                "launches are refused until the next month, or until an admin raises it.",
            ),
            _things(
                "Core hours",
                "Cores, multiplied by the hours for which they were held: 4 cores for half an hour are 2 core hours.",
            ),
            _things(
                "GPU hours",
                "GPUs, multiplied by the hours for which they were held, whether a program used them or not.",
            ),
            _things(
                "Pod hours", "The hours for which pods held a node, added up. A cluster of 10 pods has 10 in an hour."
            ),
        ),
    ),
    TermGroup(
        "states",
        "The life of an execution",
        (
            _word("Queued", "It waits for a free slot: yours, one of its tier, or everybody’s. Users take turns."),
            _thing(
                "Expected wait",
                "An estimate of the time until an execution runs, from similar executions, the queue before it and the slots in use. "
                "Four of five executions should start within the range. With too little data there is no estimate.",
            ),
            _word(
                "Held",
                "An operator keeps it in the queue, for a reason that its page shows. It starts only after an operator releases it.",
            ),
            _word("Deploying", "It has its slots and waits for a node. A new node takes a few minutes."),
            _word("Preparing", "It is on a node: its image is pulled, its volumes are mounted, its program starts."),
            _things(
                "Start-up phases",
                "The parts of a start: the queue, the wait for a node, its files, its image, its program. Their times are shown beside the "
                "usual ones.",
            ),
            _word("Running", "Its program answers. You can open a workspace or an app now."),
            _word("Finishing", "Its program has ended; its log and files are being saved."),
            _word("Stopped", "Somebody stopped it. A stopped workspace keeps its files and can be resumed."),
            _word("Failed", "Its program ended with an error. Its page says which, and what to do next."),
            _word("Error", "The platform could not run it, or it exceeded a time limit. Its page says why."),
            _thing(
                "Knowledge base",
                "Known lines of logs with what they mean and the usual cure. The end of a failed program’s log is searched for them.",
            ),
            _thing(
                "Start-up time",
                "The time from an execution’s request until it runs: waiting for a slot and a node, pulling its image, starting it.",
            ),
            _thing(
                "Knowledge entry",
                "One known line: a pattern, what it means, the usual cure, and a link. Some are built in; admins add their own, and switch "
                "entries off.",
            ),
            _word("Idle", "Nothing uses it: no program of a workspace runs, or a worker has no task."),
        ),
    ),
    TermGroup(
        "cluster",
        "The machines",
        (
            _thing("Node", "One machine of the Kubernetes cluster."),
            _thing(
                "Node pool",
                "Nodes of one kind. A tier names the pool that it runs in; an autoscaler may add nodes to it and remove them.",
            ),
            _thing(
                "Pod",
                "What Kubernetes runs on a node for an execution. A cluster has one for its head and one for each worker.",
            ),
            Term(
                "autoscaler",
                "Autoscaler",
                "What does the autoscaler do?",
                "It adds nodes to a pool when pods find no room, and removes those that are not needed. A cluster has one for its workers.",
            ),
            _word(
                "Requested",
                "What pods have reserved of a node, used or not. A pod starts only where its request has room.",
            ),
            _word("Used", "What programs use now, as measured on the nodes."),
            _word("Allocatable", "What a node offers to pods: its cores and memory minus what its system reserves."),
            _word("Cordoned", "Somebody has closed the node to new pods. Running pods continue."),
            _word(
                "Evicted",
                "A pod was removed from its node to make room, or because the node is going away. Its execution’s page says what "
                "happens next.",
            ),
        ),
    ),
)
TERMS = {term.id: term for group in GROUPS for term in group.terms}
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
