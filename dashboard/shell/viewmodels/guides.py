"""The short guides of the help page, as steps with the page on which each is done; pure."""

from dataclasses import dataclass

from grid.core.translation import gettext as _


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
        _("Work in a workspace"),
        "",
        (
            GuideStep(_("Choose a project, an environment and a hardware tier."), "launch", _("Launch")),
            GuideStep(_("Open it as soon as it runs. It has an address of its own, and only you can open it.")),
            GuideStep(_("Stop it when you are done: it costs as long as it holds a node. Its files are kept.")),
            GuideStep(_("Resume it when you need it again."), "workspaces", _("Your workspaces")),
            GuideStep(
                _(
                    "When a notification says that it is about to be stopped because it is idle, keep it longer on its page."
                )
            ),
        ),
    ),
    Guide(
        "guide-job",
        _("Run a job again and again"),
        "",
        (
            GuideStep(_("Write a command, and choose a timeout and retries under Options."), "launch", _("Launch")),
            GuideStep(_("On its page, run it again, or run it with other settings."), "jobs", _("Your jobs")),
            GuideStep(
                _("A sweep runs it once for each line of a table; the command reads the values as variables: $rate.")
            ),
            GuideStep(_("Compare two runs to see what differed between them.")),
        ),
    ),
    Guide(
        "guide-cluster",
        _("Compute on a cluster"),
        "",
        (
            GuideStep(
                _("Tick “Attach a cluster” when you launch a workspace or a job, or launch a cluster alone."),
                "launch",
                _("Launch"),
            ),
            GuideStep(
                _(
                    "Choose how many workers it has at least and at most. The card beside it says what that takes and costs."
                )
            ),
            GuideStep(_("In the program, Client() (Dask), ray.init() or a Spark session joins the attached cluster.")),
            GuideStep(
                _(
                    "An attached cluster ends with its workspace or job; a cluster that you launched alone runs until you stop it."
                )
            ),
        ),
    ),
    Guide(
        "guide-trouble",
        _("When something waits or fails"),
        "",
        (
            GuideStep(
                _("Open its page: it says why, what happens next, and who can help."),
                "executions",
                _("Executions"),
            ),
            GuideStep(_("Read the end of its log. It is kept after the end of the execution.")),
            GuideStep(_("Killed for memory: launch it again on a tier with more memory, or on more workers.")),
            GuideStep(_("Waiting for a slot: stop executions that you no longer need."), "home", _("Home")),
            GuideStep(_("See what you have used, and what it cost."), "usage", _("Your usage")),
        ),
    ),
    Guide(
        "guide-operator",
        _("Watch the cluster"),
        "observe",
        (
            GuideStep(
                _("See what is waiting or failing, and whether the platform is healthy."), "overview", _("Overview")
            ),
            GuideStep(
                _("See each node pool, its nodes and their pods, and what the autoscaler does."),
                "infrastructure",
                _("Infrastructure"),
            ),
            GuideStep(_("See what makes starts slow, and where."), "startup", _("Start-up times")),
            GuideStep(_("See who uses how much."), "usage-of-everybody", _("Everybody’s usage")),
        ),
    ),
    Guide(
        "guide-admin",
        _("Set the grid up"),
        "administer",
        (
            GuideStep(
                _("Offer hardware tiers. Each page shows how many pods of the tier fit a node."), "tiers", _("Tiers")
            ),
            GuideStep(
                _("Offer images, and say for which kinds of execution each is."), "environments", _("Environments")
            ),
            GuideStep(_("Create projects, and name their owners, who add members."), "projects", _("Projects")),
            GuideStep(_("Invite people by a link, and give them roles."), "people", _("People")),
            GuideStep(
                _("Change limits and autoscaling. One review says what a change does."),
                "configuration",
                _("Configuration"),
            ),
        ),
    ),
)
