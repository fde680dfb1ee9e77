"""The short guides of the help page, as steps with the page on which each is done; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuideStep:
    """What to do; `link` is said of the page of that URL name."""

    text: str
    page: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class Guide:
    """A task in steps. `permission` names the permission of those whom it concerns; "" is everybody."""

    id: str
    title: str
    permission: str
    steps: tuple[GuideStep, ...]


GUIDES = (
    Guide(
        "guide-workspace",
        "Work in a workspace",
        "",
        (
            GuideStep("Choose a project, an environment and a hardware tier.", "launch", "Launch"),
            GuideStep("Open it as soon as it runs. It has an address of its own, and only you can open it."),
            GuideStep("Stop it when you are done: it costs as long as it holds a node. Its files are kept."),
            GuideStep("Resume it when you need it again.", "workspaces", "Your workspaces"),
            GuideStep(
                "When a notification says that it is about to be stopped because it is idle, keep it longer on its page."
            ),
        ),
    ),
    Guide(
        "guide-job",
        "Run a job again and again",
        "",
        (
            GuideStep("Write a command, and choose a timeout and retries under Options.", "launch", "Launch"),
            GuideStep("On its page, run it again, or run it with other settings.", "jobs", "Your jobs"),
            GuideStep(
                "A sweep runs it once for each line of a table; the command reads the values as variables: $rate."
            ),
            GuideStep("Compare two runs to see what differed between them."),
        ),
    ),
    Guide(
        "guide-cluster",
        "Compute on a cluster",
        "",
        (
            GuideStep(
                "Tick “Attach a cluster” when you launch a workspace or a job, or launch a cluster alone.",
                "launch",
                "Launch",
            ),
            GuideStep(
                "Choose how many workers it has at least and at most. The card beside it says what that takes and costs."
            ),
            GuideStep("In the program, Client() (Dask), ray.init() or a Spark session joins the attached cluster."),
            GuideStep(
                "An attached cluster ends with its workspace or job; a cluster that you launched alone runs until you stop it."
            ),
        ),
    ),
    Guide(
        "guide-trouble",
        "When something waits or fails",
        "",
        (
            GuideStep(
                "Open its page: it says why, what happens next, and who can help.",
                "executions",
                "Executions",
            ),
            GuideStep("Read the end of its log. It is kept after the end of the execution."),
            GuideStep("Killed for memory: launch it again on a tier with more memory, or on more workers."),
            GuideStep("Waiting for a slot: stop executions that you no longer need.", "home", "Home"),
            GuideStep("See what you have used, and what it cost.", "usage", "Your usage"),
        ),
    ),
    Guide(
        "guide-operator",
        "Watch the cluster",
        "observe",
        (
            GuideStep("See what is waiting or failing, and whether the platform is healthy.", "overview", "Overview"),
            GuideStep(
                "See each node pool, its nodes and their pods, and what the autoscaler does.",
                "infrastructure",
                "Infrastructure",
            ),
            GuideStep("See what makes starts slow, and where.", "startup", "Start-up times"),
            GuideStep("See who uses how much.", "usage-of-everybody", "Everybody’s usage"),
        ),
    ),
    Guide(
        "guide-admin",
        "Set the grid up",
        "administer",
        (
            GuideStep("Offer hardware tiers. Each page shows how many pods of the tier fit a node.", "tiers", "Tiers"),
            GuideStep("Offer images, and say for which kinds of execution each is.", "environments", "Environments"),
            GuideStep("Create projects, and name their owners, who add members.", "projects", "Projects"),
            GuideStep("Invite people by a link, and give them roles.", "people", "People"),
            GuideStep(
                "Change limits and autoscaling. One review says what a change does.", "configuration", "Configuration"
            ),
        ),
    ),
)
