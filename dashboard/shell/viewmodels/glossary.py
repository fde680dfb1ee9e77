"""The words of the house, each with the sentence that explains it: what a "?" beside a word opens, and the help page lists; pure."""

from dashboard.shell.viewmodels.glossary_terms import OF_USERS, Term, TermGroup
from grid.core.translation import gettext as _

GROUPS = (
    *OF_USERS,
    TermGroup(
        "states",
        _("The life of an execution"),
        (
            Term(
                "queued",
                _("Queued"),
                _("What does “queued” mean?"),
                _("It waits for a free slot: yours, one of its tier, or everybody’s. Users take turns."),
            ),
            Term(
                "expected-wait",
                _("Expected wait"),
                _("What is an expected wait?"),
                _(
                    "An estimate of the time until an execution runs, from similar executions, the queue before it and the slots in use. "
                    "Four of five executions should start within the range. With too little data there is no estimate."
                ),
            ),
            Term(
                "held",
                _("Held"),
                _("What does “held” mean?"),
                _(
                    "An operator keeps it in the queue, for a reason that its page shows. It starts only after an operator releases it."
                ),
            ),
            Term(
                "deploying",
                _("Deploying"),
                _("What does “deploying” mean?"),
                _("It has its slots and waits for a node. A new node takes a few minutes."),
            ),
            Term(
                "preparing",
                _("Preparing"),
                _("What does “preparing” mean?"),
                _("It is on a node: its image is pulled, its volumes are mounted, its program starts."),
            ),
            Term(
                "start-up-phases",
                _("Start-up phases"),
                _("What are start-up phases?"),
                _(
                    "The parts of a start: the queue, the wait for a node, its files, its image, its program. Their "
                    "times are shown beside the "
                    "usual ones."
                ),
            ),
            Term(
                "running",
                _("Running"),
                _("What does “running” mean?"),
                _("Its program answers. You can open a workspace or an app now."),
            ),
            Term(
                "finishing",
                _("Finishing"),
                _("What does “finishing” mean?"),
                _("Its program has ended; its log and files are being saved."),
            ),
            Term(
                "stopped",
                _("Stopped"),
                _("What does “stopped” mean?"),
                _("Somebody stopped it. A stopped workspace keeps its files and can be resumed."),
            ),
            Term(
                "failed",
                _("Failed"),
                _("What does “failed” mean?"),
                _("Its program ended with an error. Its page says which, and what to do next."),
            ),
            Term(
                "error",
                _("Error"),
                _("What does “error” mean?"),
                _("The platform could not run it, or it exceeded a time limit. Its page says why."),
            ),
            Term(
                "knowledge-base",
                _("Knowledge base"),
                _("What is a knowledge base?"),
                _(
                    "Known lines of logs with what they mean and the usual cure. The end of a failed program’s log is searched for them."
                ),
            ),
            Term(
                "start-up-time",
                _("Start-up time"),
                _("What is a start-up time?"),
                _(
                    "The time from an execution’s request until it runs: waiting for a slot and a node, pulling its image, starting it."
                ),
            ),
            Term(
                "error-budget",
                _("Error budget"),
                _("What is an error budget?"),
                _(
                    "How much may break a promise of the platform within its window: of 1,000 starts, of which 95 % are "
                    "promised, 50. The burn "
                    "rate is how many times faster than that it is used up."
                ),
            ),
            Term(
                "knowledge-entry",
                _("Knowledge entry"),
                _("What is a knowledge entry?"),
                _(
                    "One known line: a pattern, what it means, the usual cure, and a link. Some are built in; admins add "
                    "their own, and switch "
                    "entries off."
                ),
            ),
            Term(
                "idle",
                _("Idle"),
                _("What does “idle” mean?"),
                _("Nothing uses it: no program of a workspace runs, or a worker has no task."),
            ),
        ),
    ),
    TermGroup(
        "cluster",
        _("The machines"),
        (
            Term("node", _("Node"), _("What is a node?"), _("One machine of the Kubernetes cluster.")),
            Term(
                "node-pool",
                _("Node pool"),
                _("What is a node pool?"),
                _(
                    "Nodes of one kind. A tier names the pool that it runs in; an autoscaler may add nodes to it and remove them."
                ),
            ),
            Term(
                "pod",
                _("Pod"),
                _("What is a pod?"),
                _(
                    "What Kubernetes runs on a node for an execution. A cluster has one for its head and one for each worker."
                ),
            ),
            Term(
                "autoscaler",
                _("Autoscaler"),
                _("What does the autoscaler do?"),
                _(
                    "It adds nodes to a pool when pods find no room, and removes those that are not needed. A cluster "
                    "has one for its workers."
                ),
            ),
            Term(
                "requested",
                _("Requested"),
                _("What does “requested” mean?"),
                _("What pods have reserved of a node, used or not. A pod starts only where its request has room."),
            ),
            Term("used", _("Used"), _("What does “used” mean?"), _("What programs use now, as measured on the nodes.")),
            Term(
                "allocatable",
                _("Allocatable"),
                _("What does “allocatable” mean?"),
                _("What a node offers to pods: its cores and memory minus what its system reserves."),
            ),
            Term(
                "cordoned",
                _("Cordoned"),
                _("What does “cordoned” mean?"),
                _("Somebody has closed the node to new pods. Running pods continue."),
            ),
            Term(
                "evicted",
                _("Evicted"),
                _("What does “evicted” mean?"),
                _(
                    "A pod was removed from its node to make room, or because the node is going away. Its execution’s page says what "
                    "happens next."
                ),
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
