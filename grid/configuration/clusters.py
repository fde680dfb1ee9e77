"""The settings of on-demand clusters, each once for all frameworks and once for each framework, and the policy that they make up."""

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, replace

from grid.configuration.setting import ON, Setting, SettingTopic, ValueRange
from grid.core.translation import gettext as _
from grid.models.environment import Framework

_CLUSTERS = SettingTopic("com.cerebro.computegrid.clusters", _("Clusters"))
_FROM_NOW_ON = _("Applies to clusters launched from now on; running ones keep theirs.")
_PROPOSAL = _("Changes what the launch form proposes; running clusters keep theirs.")
# The maxima of https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/.
_LONGEST_PERIOD, _LONGEST_STABILISATION = 30 * 60, 60 * 60


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """The admin's settings for clusters of one framework. Targets are in percent of the workers' requests."""

    autoscaling: bool
    target_cpu: int
    target_memory: int
    minimum_target: int
    maximum_target: int
    maximum_workers: int
    drain_seconds: int
    up_workers: int
    up_percent: int
    up_period_seconds: int
    up_stabilisation_seconds: int
    down_percent: int
    down_period_seconds: int
    down_stabilisation_seconds: int


def _percent(name: str, title: str, default: int, meaning: str, *, effect: str = _FROM_NOW_ON) -> Setting:
    return Setting(_CLUSTERS, name, title, ValueRange(default, _("percent"), 1, 100), meaning, effect)


def _seconds(name: str, title: str, default: int, bounds: tuple[int, int], meaning: str) -> Setting:
    return Setting(_CLUSTERS, name, title, ValueRange(default, _("seconds"), *bounds), meaning, _FROM_NOW_ON)


# Keyed by the field of `ClusterPolicy`, in the order of the page.
# fmt: off
CLUSTER_SETTINGS: Mapping[str, Setting] = {
    "autoscaling": Setting(_CLUSTERS, "autoscaling", _("Autoscaling"), ON,
        _("Whether clusters may grow and shrink by themselves. Off: new clusters keep their number of workers."),
        _FROM_NOW_ON),
    "maximum_workers": Setting(
        _CLUSTERS, "maximumWorkers", _("Maximum workers"), ValueRange(100, _("workers"), 1, 10_000),
        _("How many workers one cluster may have. A user's slots limit it as well: the head and each worker take "
          "one.")),
    "target_cpu": _percent("targetCpuPercent", _("CPU target"), 80,
        _("Preset of the launch form: workers are added while their average use is above this share of the cores "
          "they request."), effect=_PROPOSAL),
    "target_memory": _percent("targetMemoryPercent", _("Memory target"), 80,
        _("Preset of the launch form: workers are added while their average use is above this share of the memory "
          "they request."), effect=_PROPOSAL),
    "minimum_target": _percent("minimumTargetPercent", _("Lowest target"), 20,
        _("No target below this may be chosen.")),
    "maximum_target": _percent("maximumTargetPercent", _("Highest target"), 100,
        _("No target above this may be chosen.")),
    "up_workers": Setting(_CLUSTERS, "scaleUpWorkers", _("Growth in workers"), ValueRange(4, _("workers"), 1, 10_000),
        _("How many workers may be added in one period, or the share below if that is more."), _FROM_NOW_ON),
    "up_percent": Setting(_CLUSTERS, "scaleUpPercent", _("Growth in percent"), ValueRange(100, _("percent"), 1, 1000),
        _("By which share of its workers a cluster may grow in one period; 100 doubles it."), _FROM_NOW_ON),
    "up_period_seconds": _seconds("scaleUpPeriodSeconds", _("Period of growth"), 15, (1, _LONGEST_PERIOD),
        _("The period that growth is counted in.")),
    "up_stabilisation_seconds": _seconds(
        "scaleUpStabilisationSeconds", _("Worker scale-up delay"), 0, (0, _LONGEST_STABILISATION),
        _("A cluster scales up when the load called for it during this whole time; 0 scales up at once.")),
    "down_percent": _percent("scaleDownPercent", _("Shrinking in percent"), 100,
        _("Which share of its workers a cluster may lose in one period.")),
    "down_period_seconds": _seconds("scaleDownPeriodSeconds", _("Period of shrinking"), 15, (1, _LONGEST_PERIOD),
        _("The period that shrinking is counted in.")),
    "down_stabilisation_seconds": _seconds(
        "scaleDownStabilisationSeconds", _("Worker scale-down delay"), 300, (0, _LONGEST_STABILISATION),
        _("A cluster with a target of CPU or memory shrinks when the load allowed it during all of this time, so "
          "that a pause does not cost it its workers. One that grows for waiting tasks alone shrinks at once.")),
    "drain_seconds": _seconds("drainSeconds", _("Drain time"), 60, (1, 60 * 60),
        _("How long a worker that is to be removed may take to finish its tasks and hand over its data.")),
}
# fmt: on


def _for_framework(setting: Setting, framework: Framework) -> Setting:
    differing = _("{framework} clusters, where they differ", framework=framework.label)
    topic = SettingTopic(f"{_CLUSTERS.prefix}.{framework.value}", differing, framework.value)
    title = _("{title} of {framework} clusters", title=setting.title, framework=framework.label)
    return replace(setting, topic=topic, title=title, general=setting.key)


FRAMEWORK_SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    framework.value: {field: _for_framework(setting, framework) for field, setting in CLUSTER_SETTINGS.items()}
    for framework in Framework
}


def policy_of(framework: str, values: Mapping[str, int]) -> ClusterPolicy:
    """Return the framework's policy. `values` are those in force, by key. Raise ValueError with a sentence for an unknown framework."""
    if framework not in FRAMEWORK_SETTINGS:
        raise ValueError(
            _("There is no framework {name!r}; there are {known}.", name=framework, known=", ".join(FRAMEWORK_SETTINGS))
        )
    in_force = {field: values[setting.key] for field, setting in FRAMEWORK_SETTINGS[framework].items()}
    return ClusterPolicy(autoscaling=bool(in_force.pop("autoscaling")), **in_force)


def contradiction(values: Mapping[str, int]) -> tuple[str, Container[str]] | None:
    """Return why these values, of every key, contradict each other, and the keys of those that do; None when they do not."""
    for framework in Framework:
        policy = policy_of(framework.value, values)
        names = {"framework": framework.label, **asdict(policy)}
        if policy.minimum_target > policy.maximum_target:
            sentence = _(
                "For {framework} clusters the lowest target would be {minimum_target} percent and the highest "
                "{maximum_target}, so none could be chosen. Change the other target as well.",
                **names,
            )
            return sentence, _keys_of(framework, "minimum_target", "maximum_target")
        for field, word, target in (
            ("target_cpu", _("CPU"), policy.target_cpu),
            ("target_memory", _("memory"), policy.target_memory),
        ):
            if not policy.minimum_target <= target <= policy.maximum_target:
                sentence = _(
                    "The target of {resource} of {framework} clusters would be {target} percent, and people may choose "
                    "{minimum_target} to {maximum_target}. Change the other target as well.",
                    resource=word,
                    target=target,
                    **names,
                )
                return sentence, _keys_of(framework, "minimum_target", "maximum_target", field)
    return None


def _keys_of(framework: Framework, *fields: str) -> set[str]:
    return {key for field in fields for key in FRAMEWORK_SETTINGS[framework.value][field].keys}
