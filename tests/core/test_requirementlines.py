"""What may be typed as requirements: packages of the index, and nothing that pip would take as something else."""

import pytest

from grid.core.requirementlines import MOST_LINES, parse_requirements, why_refused


@pytest.mark.parametrize(
    ("line", "argument"),
    [
        ("polars", "polars"),
        ("polars==1.9.0", "polars==1.9.0"),
        ("  scikit-learn >= 1.5, < 2  # for the forest", "scikit-learn<2,>=1.5"),
        ("dask[complete]==2026.8.0", "dask[complete]==2026.8.0"),
        ('tomli; python_version < "3.11"', 'tomli; python_version < "3.11"'),
        ("zope.interface~=6.0", "zope.interface~=6.0"),
    ],
)
def test_a_requirement_becomes_an_argument_of_pip(line: str, argument: str) -> None:
    assert parse_requirements(line) == ((argument,), ())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        *(("-e .", "Options"), ("--index-url https://evil.test/simple", "Options"), ("-r /etc/passwd", "Options")),
        *(("--extra-index-url=https://evil.test", "Options"), ("-f /tmp", "Options"), ("--pre", "Options")),
        *(("https://evil.test/x.whl", "addresses"), ("git+https://evil.test/x.git", "addresses")),
        *(("x @ https://evil.test/x.whl", "addresses"), ("x @ file:///tmp/x", "addresses"), ("./x", "folders")),
        *((".", "folders"), ("..", "folders"), ("/tmp/x", "folders"), ("C:\\x", "folders"), ("a/b", "folders")),
        *(("evil.whl", "file"), ("evil.tar.gz", "file"), ("Evil.ZIP", "file")),
        ("a b", "no requirement"),
        *(("$(reboot)", "no requirement"), ("`id`", "no requirement"), ("polars; rm -rf", "no requirement")),
        *(("pоlars", "no requirement"), ("polars\x00", "visible"), ("polars\x1b[31m", "visible")),
        ("x" * 501, "at most 500 characters"),
    ],
)
def test_invalid_requirement_is_refused_with_line_and_reason(line: str, why: str) -> None:
    requirements, problems = parse_requirements(f"polars\n{line}")
    assert [problem.path for problem in problems] == ["requirements"], problems
    assert problems[0].message.startswith("Line 2, “")
    assert why in problems[0].message
    assert requirements == ("polars",)


def test_comments_and_empty_lines_do_not_count() -> None:
    assert parse_requirements("# what we need\n\r\npolars\r\n\n#-e .\n") == (("polars",), ())


@pytest.mark.parametrize(
    ("text", "code"), [("", "required"), ("# nothing", "required"), ("polars\n" * (MOST_LINES + 1), "too_many")]
)
def test_no_and_too_many_requirements_are_refused(text: str, code: str) -> None:
    assert parse_requirements(text)[1][0].code == code


def test_deeply_nested_requirement_is_read_or_refused_at_once() -> None:
    # By a pattern that tries each blank as the beginning of a comment this takes hours.
    assert parse_requirements("a" + " " * 400_000 + "x")[1]
    nested = "a; " + 240 * "(" + "os_name>'x'" + 240 * ")"

    def deeper(frames: int) -> str:
        return deeper(frames - 1) if frames else why_refused(nested)

    assert deeper(200) in ("", why_refused("no requirement at all"))
