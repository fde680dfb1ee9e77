"""Versions of Dask, Ray and Spark against their Python, Java and Scala, and against one another."""

from typing import Any

import pytest

from grid.clusters.frameworkversions import Declared, declared, environment_lines, pair_sentences


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


@pytest.mark.parametrize(
    ("framework", "version", "has", "severity", "words"),
    [
        (
            "spark",
            "3.5.1",
            {"python": "3.8", "java": "11", "scala": "2.12"},
            "ok",
            "Java 8, 11 or 17, Scala 2.12 or 2.13",
        ),
        ("spark", "3.5.1", {"java": "21"}, "problem", "the environment has Java 21"),
        (
            "spark",
            "4.0.0",
            {"python": "3.8", "java": "11", "scala": "2.12"},
            "problem",
            "Python 3.8, Java 11 and Scala 2.12",
        ),
        ("spark", "4.1.2", {"python": "3.9"}, "problem", "Python 3.10 or later, and the environment has Python 3.9"),
        ("spark", "4.2.0", {"java": "25"}, "neutral", "Which Python and Scala the image has is not known"),
        ("spark", "9.9.0", {"java": "8"}, "neutral", "not known here"),
        ("ray", "2.60.0", {"python": "3.9"}, "problem", "It needs Python 3.10 or later"),
        ("ray", "2.51.2", {"python": "3.9"}, "ok", "the environment has Python 3.9"),
        ("ray", "2.52.0", {"python": "3.9"}, "problem", "It needs Python 3.10 or later"),
        ("ray", "2.11.0", {"python": "3.8"}, "problem", "It needs Python 3.9 or later"),
        ("ray", "2.9.3", {}, "neutral", "Which Python the image has is not known"),
        ("ray", "1.0", {"python": "3.6"}, "neutral", "not known here"),
        ("dask", "2023.5.1", {"python": "3.8"}, "problem", "It needs Python 3.9 or later"),
        ("dask", "2024.8.0", {"python": "3.9"}, "ok", "Python 3.9 or later"),
        ("dask", "2024.8.1", {"python": "3.9"}, "problem", "It needs Python 3.10 or later"),
        ("dask", "2026.8.0", {"python": "3.12"}, "ok", "Python 3.10 or later"),
    ],
)
def test_each_framework_is_held_to_its_own_matrix(
    framework: str, version: str, has: dict[str, Any], severity: str, words: str
) -> None:
    [line] = environment_lines(Declared("Lab", {framework: version}, **has))
    assert (line.severity, words in line.sentence) == (severity, True), line.sentence
    assert line.subject == f"Lab: {framework.capitalize()} {version}"
    assert bool(line.source) is ("not known here" not in line.sentence)


def test_requirements_that_install_another_version_than_declared_are_told() -> None:
    lab = Declared("Lab", {"dask": "2026.8.0"}, python="3.12", packages={"dask": "2026.8.0", "distributed": "2025.1.0"})
    [wrong, _] = environment_lines(lab)
    assert wrong.severity == "problem" and "install distributed 2025.1.0" in wrong.sentence
    [line] = environment_lines(Declared("Lab", {"spark": "3.5"}, packages={"pyspark": "3.5.1"}))
    assert line.severity == "neutral"  # less exactly is not otherwise


@pytest.mark.parametrize(
    ("framework", "ours", "theirs", "parts"),
    [
        ("dask", Declared("Lab", {"dask": "2026.8.0"}), Declared("Grid", {"dask": "2026.8.0"}), ()),
        ("spark", Declared("Lab", {"spark": "4.1.0"}), Declared("Grid", {"spark": "4.1.1"}), ()),
        ("ray", Declared("Lab", {"ray": "2.60"}), Declared("Grid", {"ray": "2.60.0"}), ()),
        ("spark", Declared("Lab", {"spark": "3.5.1"}), Declared("Grid", {"spark": "4.1.1"}), ("Spark 3.5.1",)),
        (
            "ray",
            Declared("Lab", {"ray": "2.60.0"}, python="3.11"),
            Declared("Grid", {"ray": "2.60.0"}, python="3.12"),
            ("Ray Client refuses another minor version",),
        ),
        ("ray", Declared("Lab", {"ray": "2.60.0"}), Declared("Grid", {"ray": "2.60.0"}, python="3.12"), ()),
        (
            "ray",
            Declared("Lab", {"ray": "2.60.0"}, packages={"ray": "2.55.0"}),
            Declared("Grid", {"ray": "2.60.0"}),
            ("Lab has Ray 2.55.0", "Lab: Declared is 2.60.0"),
        ),
        (
            "spark",
            Declared("Lab", {"spark": "3.5.1"}, scala="2.12"),
            Declared("Grid", {"spark": "3.5.1"}, java="21", scala="2.13"),
            ("Scala 2.12", "Grid: It runs on Java 8, 11 or 17"),
        ),
        ("ray", Declared("Lab", {}, packages={"ray": "2.60.0"}), Declared("Grid", {"ray": "2.60.0"}), ()),
        ("ray", Declared("Lab", {}), Declared("Grid", {"ray": "2.60.0"}), ("Lab is not known to contain Ray",)),
    ],
)
def test_client_and_cluster_match_or_mismatch_is_explained(
    framework: str, ours: Declared, theirs: Declared, parts: tuple[str, ...]
) -> None:
    sentences = pair_sentences(ours, theirs, framework)
    assert len(sentences) == len(parts), sentences
    assert all(part in sentence for part, sentence in zip(parts, sentences, strict=True)), sentences
