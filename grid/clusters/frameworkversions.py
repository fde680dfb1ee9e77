"""Whether the versions that environments declare of Dask, Ray and Spark go with their Python, Java and Scala, and with one another; pure.
What is not known of an image, by its name or a variable, is not judged, nor is a version that is missing in the tables below."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import listed
from grid.platformhealth.versions import VersionLine

_SPARK = "https://spark.apache.org/docs/{}.0/#downloading"
_PYPI = "https://pypi.org/project/{}/{}/#files"

_LABELS = {"dask": "Dask", "ray": "Ray", "spark": "Spark"}
_PACKAGES = {"dask": ("dask", "distributed"), "ray": ("ray",), "spark": ("pyspark",)}
_SAME_PYTHON = {
    # https://docs.dask.org/en/stable/software-environments.html
    "dask": _("Dask asks for the same software on both sides"),
    # https://docs.ray.io/en/latest/cluster/running-applications/job-submission/ray-client.html#versioning-requirements
    "ray": _("Ray Client refuses another minor version"),
    # https://spark.apache.org/docs/latest/api/python/development/errors.html
    "spark": _("PySpark cannot run with different minor versions"),
}
_DIGITS = Expression(r"\d{1,9}")
_NAMED_PYTHON = Expression(r"(?:(?:^|/)python:|(?:^|[^a-z0-9])(?:python-?|py))3\.?(\d{1,2})(?:\D|$)")
_NAMED_JAVA = Expression(r"(?:^|[^a-z])(?:openjdk|eclipse-temurin|java|jdk|jre)[-:]?(\d{1,2})(?:\D|$)")
_NAMED_SCALA = Expression(r"(?:^|[^a-z])scala[-_:]?(\d\.\d{1,2})(?:\D|$)")
_PYTHON_VARIABLE = Expression(r"(3\.\d{1,2})(?:\D|$)")
_JAVA_VARIABLE = Expression(r"(?:1\.)?(\d{1,2})(?:\D|$)")
_SCALA_VARIABLE = Expression(r"(\d\.\d{1,2})(?:\D|$)")


class Declared(msgspec.Struct, frozen=True):
    """What an environment declares: frameworks with their versions, its Python ("3.11"), Java ("17") and Scala ("2.13"), "" where nothing
    says them, and the exact versions of the packages that its requirements install."""

    name: str
    frameworks: Mapping[str, str]
    python: str = ""
    java: str = ""
    scala: str = ""
    packages: Mapping[str, str] = {}


class SparkNeeds(msgspec.Struct, frozen=True):
    """What a release of Spark runs on; `python` is the smallest version."""

    python: str
    java: tuple[str, ...]
    scala: tuple[str, ...]


SPARK = {
    "3.4": SparkNeeds("3.7", ("8", "11", "17"), ("2.12", "2.13")),
    "3.5": SparkNeeds("3.8", ("8", "11", "17"), ("2.12", "2.13")),
    "4.0": SparkNeeds("3.9", ("17", "21"), ("2.13",)),
    "4.1": SparkNeeds("3.10", ("17", "21"), ("2.13",)),
    "4.2": SparkNeeds("3.10", ("17", "21", "25"), ("2.13",)),
}
# The smallest Python that a release, and so each later one, can be installed on, as its metadata (Requires-Python) or its wheels say; the
# newest first.
SMALLEST_PYTHON: Mapping[str, Sequence[tuple[str, str]]] = {
    "ray": (("2.52.0", "3.10"), ("2.11.0", "3.9"), ("2.9.3", "3.8")),
    "dask": (("2024.8.1", "3.10"), ("2023.5.1", "3.9")),
}


def declared(
    name: str,
    frameworks: Mapping[str, str],
    *,
    images: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    packages: Mapping[str, str] | None = None,
) -> Declared:
    """Return what is declared. `images` are the image and those below it; a variable, which the program sees, counts more than a name."""
    values = variables or {}
    minor = _first(_NAMED_PYTHON, images)
    return Declared(
        name,
        {name: str(version).strip() for name, version in frameworks.items()},
        python=_first(_PYTHON_VARIABLE, [values.get("PYTHON_VERSION", "")]) or (f"3.{minor}" if minor else ""),
        java=_first(_JAVA_VARIABLE, [values.get("JAVA_VERSION", "")]) or _first(_NAMED_JAVA, images),
        scala=_first(_SCALA_VARIABLE, [values.get("SCALA_VERSION", "")]) or _first(_NAMED_SCALA, images),
        packages=packages or {},
    )


def environment_lines(environment: Declared) -> tuple[VersionLine, ...]:
    return tuple(line for name in environment.frameworks if name in _LABELS for line in _lines_of(environment, name))


def pair_sentences(client: Declared, cluster: Declared, framework: str) -> tuple[str, ...]:
    """Return why the client's program may not be able to use a cluster of the other environment; () when nothing speaks against it."""
    label, ours, theirs = _LABELS[framework], _version_in(client, framework), _version_in(cluster, framework)
    if not cluster.frameworks.get(framework):
        return ()  # the launch is refused for it
    if not ours:
        missing = _(
            "{name} is not known to contain {label}, so its code may not be able to use the cluster. "
            "Choose an environment with {label} {theirs}, or install that version in it."
        ).format(name=client.name, label=label, theirs=theirs)
        return (missing,)
    return tuple(_differences(client, cluster, framework, ours, theirs))


def _differences(client: Declared, cluster: Declared, framework: str, ours: str, theirs: str) -> Iterator[str]:
    if _differ(ours, theirs, 2 if framework == "spark" else None):
        yield _(
            "{name} has {label} {ours} and the cluster would have {theirs}; different versions often do not "
            "understand each other. Choose environments with the same version."
        ).format(name=client.name, label=_LABELS[framework], ours=ours, theirs=theirs)
    if client.python and cluster.python and client.python != cluster.python:
        same_python = _SAME_PYTHON[framework]
        yield _(
            "{name} has Python {python} and the cluster would have {cluster_python}; {same_python}. "
            "Choose environments with the same Python."
        ).format(name=client.name, python=client.python, cluster_python=cluster.python, same_python=same_python)
    if framework == "spark" and client.scala and cluster.scala and client.scala != cluster.scala:
        yield _(
            "{name} has Scala {scala} and the cluster would have {cluster_scala}; Spark’s programs need the "
            "version of Scala that Spark was compiled for. Choose environments with the same Scala."
        ).format(name=client.name, scala=client.scala, cluster_scala=cluster.scala)
    for side in (client, cluster):
        for line in _lines_of(side, framework):
            if line.severity == "problem":
                yield f"{side.name}: {line.sentence}"


def _lines_of(environment: Declared, framework: str) -> Iterator[VersionLine]:
    version = environment.frameworks.get(framework, "")
    if not version:
        return
    subject = f"{environment.name}: {_LABELS[framework]} {version}"
    for package in _PACKAGES[framework]:
        installed = environment.packages.get(package, version)
        if _differ(installed, version):
            words = _(
                "Declared is {version}, and its requirements install {package} {installed}. Correct the one that is wrong."
            ).format(version=version, package=package, installed=installed)
            yield VersionLine(subject, "problem", words)
    if framework == "spark":
        yield _spark_line(environment, subject, version)
    else:
        yield _python_line(environment, subject, framework, version)


def _spark_line(environment: Declared, subject: str, version: str) -> VersionLine:
    minor = ".".join(version.split(".")[:2])
    needs = SPARK.get(minor)
    if needs is None:
        words = _("What this version runs on is not known here; see Spark’s documentation.")
        return VersionLine(subject, "neutral", words)
    known = {"Python": environment.python, "Java": environment.java, "Scala": environment.scala}
    fits = {
        "Python": _key(environment.python) >= _key(needs.python),
        "Java": environment.java in needs.java,
        "Scala": environment.scala in needs.scala,
    }
    wrong = [f"{name} {version}" for name, version in known.items() if version and not fits[name]]
    rule = _("It runs on Java {java}, Scala {scala} and Python {python} or later").format(
        java=_any_of(needs.java), scala=_any_of(needs.scala), python=needs.python
    )
    return _judged(subject, rule, wrong, known, _SPARK.format(minor))


def _python_line(environment: Declared, subject: str, framework: str, version: str) -> VersionLine:
    rules = SMALLEST_PYTHON[framework]
    rule = next(((since, smallest) for since, smallest in rules if _key(version) >= _key(since)), None)
    if rule is None:
        words = _("What this version runs on is not known here; see {label}’s documentation.", label=_LABELS[framework])
        return VersionLine(subject, "neutral", words)
    since, smallest = rule
    is_older = environment.python and _key(environment.python) < _key(smallest)
    wrong = [f"Python {environment.python}"] if is_older else []
    words = _("It needs Python {smallest} or later", smallest=smallest)
    return _judged(subject, words, wrong, {"Python": environment.python}, _PYPI.format(framework, since))


def _judged(subject: str, rule: str, wrong: Sequence[str], known: Mapping[str, str], source: str) -> VersionLine:
    if wrong:
        words = _("{rule}, and the environment has {wrong}. Choose another image, or another version.")
        return VersionLine(subject, "problem", words.format(rule=rule, wrong=listed(wrong)), source)
    unknown = [name for name, version in known.items() if not version]
    if unknown:
        words = _("{rule}. Which {unknown} the image has is not known.", rule=rule, unknown=listed(unknown))
        return VersionLine(subject, "neutral", words, source)
    has = listed(f"{name} {version}" for name, version in known.items())
    return VersionLine(subject, "ok", _("{rule}, and the environment has {has}.", rule=rule, has=has), source)


def _any_of(versions: Sequence[str]) -> str:
    *first, last = versions
    return _("{first} or {last}", first=", ".join(first), last=last) if first else last


def _version_in(environment: Declared, framework: str) -> str:
    return environment.packages.get(_PACKAGES[framework][0]) or environment.frameworks.get(framework, "")


def _differ(version: str, other: str, parts: int | None = None) -> bool:
    """Return whether they differ in what both say: 3.5 may be 3.5.1."""
    return any(ours != theirs for ours, theirs in list(zip(_key(version), _key(other), strict=False))[:parts])


def _key(version: str) -> tuple[int, ...]:
    """Return the version's numbers for comparing; a part that is no number ends it."""
    numbers = []
    for part in version.split("."):
        digits = _DIGITS.match(part)
        if digits is None:
            break
        numbers.append(int(digits[0]))
    return tuple(numbers)


def _first(pattern: Expression, texts: Iterable[str]) -> str:
    """Return what the pattern finds in the first text, such as an image's name without its digest, in which it finds anything."""
    matches = (pattern.search(text.partition("@")[0].lower()) for text in texts)
    return next((match[1] for match in matches if match), "")
