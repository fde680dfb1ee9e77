"""The first steps of a person who is new, and of an admin whose installation is empty, each ticked from what is stored; pure."""

from dataclasses import dataclass, replace

from grid.core.translation import gettext as _

WORK, SETUP = "work", "setup"
CARDS = (WORK, SETUP)


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """What a person has done so far; `project` is the name of one in which the person may launch, "" without any."""

    project: str
    has_launched: bool
    has_opened: bool
    has_ended: bool


@dataclass(frozen=True, slots=True)
class SetupFacts:
    """What an installation has; `has_people` is whether anybody but this admin has an account."""

    has_tier: bool
    has_environment: bool
    has_project: bool
    has_people: bool


@dataclass(frozen=True, slots=True)
class FirstStep:
    """One step; `link` is said of the page of that URL name, "" without a page."""

    title: str
    text: str
    is_done: bool
    page: str = ""
    link: str = ""
    is_next: bool = False


@dataclass(frozen=True, slots=True)
class FirstSteps:
    card: str
    title: str
    steps: tuple[FirstStep, ...]

    @property
    def is_done(self) -> bool:
        return all(step.is_done for step in self.steps)


def work_steps(facts: WorkFacts) -> FirstSteps:
    """Return the way to a first workspace and back. What has ended was launched, and is reason enough not to explain how to open it."""
    opened = facts.has_opened or facts.has_ended
    launched = facts.has_launched or opened
    project = _("Ask an owner to add you, or an admin to create one.")
    if facts.project:
        project = _("You can launch in {project}.", project=facts.project)
    return _card(
        WORK,
        _("First steps"),
        FirstStep(_("Get a project"), project, bool(facts.project)),
        FirstStep(
            _("Launch a workspace"),
            _("Choose an environment and a hardware tier; the defaults are fine."),
            launched,
            "launch" if facts.project else "",
            _("Launch"),
        ),
        FirstStep(_("Open it"), _("When it is running, it has an “Open” button."), opened),
        FirstStep(_("Stop it when you are done"), _("Its files are kept, and you can resume it."), facts.has_ended),
    )


def setup_steps(facts: SetupFacts) -> FirstSteps:
    """Return what an installation needs before anybody can launch."""
    return _card(
        SETUP,
        _("Set the grid up"),
        FirstStep(
            _("Add a hardware tier"), _("A size that people choose."), facts.has_tier, "tier-new", _("Add a tier")
        ),
        FirstStep(
            _("Add an environment"),
            _("An image with the tools they work with."),
            facts.has_environment,
            "environment-new",
            _("Add an environment"),
        ),
        FirstStep(
            _("Add a project"), _("Its members share files."), facts.has_project, "project-new", _("Add a project")
        ),
        FirstStep(_("Invite people"), _("By a link, with a role."), facts.has_people, "person-invite", _("Invite")),
    )


def _card(card: str, title: str, *steps: FirstStep) -> FirstSteps:
    following = next((step for step in steps if not step.is_done), None)
    return FirstSteps(card, title, tuple(replace(step, is_next=step is following) for step in steps))
