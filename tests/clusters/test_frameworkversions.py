"""Versions of Dask, Ray and Spark against their Python, Java and Scala, and against one another."""

from typing import Any

import pytest

from grid.clusters.frameworkversions import Declared, declared, environment_lines, pair_sentences
from tests.support.golden import assert_golden


@pytest.mark.parametrize(
    ("image", "variables", "known"),
    [
        ("rayproject/ray:2.60.0-py311-gpu", {}, ("3.11", "", "")),
        ("apache/spark:3.5.1-scala2.12-java17-python3-ubuntu", {}, ("", "17", "2.12")),
        ("ghcr.io/dask/dask:2026.8.0-py3.12", {}, ("3.12", "", "")),
        ("docker.io/library/python:3.9-slim", {}, ("3.9", "", "")),
        ("eclipse-temurin:21-jre", {}, ("", "21", "")),
        ("quay.io/jupyter/pyspark-notebook:python-3.11", {}, ("3.11", "", "")),
        ("apache/spark-py:3.5.1", {}, ("", "", "")),  # a version of Spark
        ("compute-grid/ray:2.60", {}, ("", "", "")),
        ("reg.example.com:5000/team/lab@sha256:py311java17", {}, ("", "", "")),
        ("lab:1", {"PYTHON_VERSION": "3.10.14", "JAVA_VERSION": "jdk-17.0.9+9", "SCALA_VERSION": "2.13.14"}, None),
        ("python:3.9", {"PYTHON_VERSION": "3.10", "JAVA_VERSION": "1.8.0_402"}, ("3.10", "8", "")),
        ("python:3.9", {"PYTHON_VERSION": "the newest"}, ("3.9", "", "")),
    ],
)
def test_versions_are_read_where_images_and_variables_say_them(
    image: str, variables: dict[str, str], known: tuple[str, str, str] | None
) -> None:
    read = declared("Lab", {}, images=[image], variables=variables)
    assert (read.python, read.java, read.scala) == (known or ("3.10", "17", "2.13"))


MATRIX: list[tuple[str, str, dict[str, str]]] = [
    ("spark", "3.5.1", {"python": "3.8", "java": "11", "scala": "2.12"}),
    ("spark", "3.5.1", {"java": "21"}),
    ("spark", "4.0.0", {"python": "3.8", "java": "11", "scala": "2.12"}),
    ("spark", "4.1.2", {"python": "3.9"}),
    ("spark", "4.2.0", {"java": "25"}),
    ("spark", "9.9.0", {"java": "8"}),
    *(("ray", version, {"python": "3.9"}) for version in ("2.60.0", "2.51.2", "2.52.0")),
    ("ray", "2.11.0", {"python": "3.8"}),
    ("ray", "2.9.3", {}),
    ("ray", "1.0", {"python": "3.6"}),
    ("dask", "2023.5.1", {"python": "3.8"}),
    *(("dask", version, {"python": "3.9"}) for version in ("2024.8.0", "2024.8.1")),
    ("dask", "2026.8.0", {"python": "3.12"}),
]


def lab(framework: str, version: str, **more: Any) -> Declared:
    return Declared("Lab", {framework: version}, **more)


def grid(framework: str, version: str, **more: Any) -> Declared:
    return Declared("Grid", {framework: version}, **more)


PAIRS: list[tuple[str, Declared, Declared]] = [
    ("dask", lab("dask", "2026.8.0"), grid("dask", "2026.8.0")),
    ("spark", lab("spark", "4.1.0"), grid("spark", "4.1.1")),
    ("ray", lab("ray", "2.60"), grid("ray", "2.60.0")),
    ("spark", lab("spark", "3.5.1"), grid("spark", "4.1.1")),
    ("ray", lab("ray", "2.60.0", python="3.11"), grid("ray", "2.60.0", python="3.12")),
    ("ray", lab("ray", "2.60.0"), grid("ray", "2.60.0", python="3.12")),
    ("ray", lab("ray", "2.60.0", packages={"ray": "2.55.0"}), grid("ray", "2.60.0")),
    ("spark", lab("spark", "3.5.1", scala="2.12"), grid("spark", "3.5.1", java="21", scala="2.13")),
    ("ray", Declared("Lab", {}, packages={"ray": "2.60.0"}), grid("ray", "2.60.0")),
    ("ray", Declared("Lab", {}), grid("ray", "2.60.0")),
]


def having(image: Declared) -> str:
    """What the environment declares, in a line."""
    has = {"Python": image.python, "Java": image.java, "Scala": image.scala, **image.frameworks}
    installs = [f"installs {name} {version}" for name, version in image.packages.items()]
    return ", ".join([image.name, *(f"{name} {version}" for name, version in has.items() if version), *installs])


def test_versions_are_judged_as_stored() -> None:
    blocks = []
    for framework, version, has in MATRIX:
        image = lab(framework, version, **has)
        [line] = environment_lines(image)
        assert bool(line.source) is ("not known here" not in line.sentence)
        blocks.append(f"# {having(image)}\n{line.subject} ({line.severity}): {line.sentence}")
    for framework, ours, theirs in PAIRS:
        sentences = pair_sentences(ours, theirs, framework) or ["(they match)"]
        blocks.append("\n".join([f"# {framework}: {having(ours)}; with {having(theirs)}", *sentences]))
    assert_golden("words-of-framework-versions", "\n".join(blocks), ending="txt")


def test_requirements_that_install_another_version_than_declared_are_told() -> None:
    image = Declared(
        "Lab", {"dask": "2026.8.0"}, python="3.12", packages={"dask": "2026.8.0", "distributed": "2025.1.0"}
    )
    [wrong, _] = environment_lines(image)
    assert wrong.severity == "problem" and "install distributed 2025.1.0" in wrong.sentence
    [line] = environment_lines(Declared("Lab", {"spark": "3.5"}, packages={"pyspark": "3.5.1"}))
    assert line.severity == "neutral"  # less exactly is not otherwise
