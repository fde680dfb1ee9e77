"""What people and programs write, as it comes from the field: quantities, labels, requirements, names of GPUs."""

import re
from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from grid.core.gitnames import is_revision
from grid.core.labels import label_value
from grid.core.quantity import LARGEST, format_bytes, format_cores, is_gpu, millicores, parse_quantity, whole
from grid.core.requirementlines import parse_requirements
from grid.core.wording import plain_text
from grid.diagnosis.resources import resource_amount

# https://pip.pypa.io/en/stable/reference/requirements-file-format/: a byte order mark, tabs, comments and joined lines are allowed.
COMPILED = (
    "\ufeff# made by pip-compile\nattrs==24.2.0 \\\n    --hash=sha256:"
    + "a" * 64
    + " \\\n    --hash=sha256:"
    + "b" * 64
    + "\n"
    "    # via cattrs\ncattrs\t>=23 ; python_version >= '3.8'  # via -r app.in\npolars \\\n  ==1.9.0"
)


def test_requirements_are_read_as_pip_compile_writes_them() -> None:
    lines, problems = parse_requirements(COMPILED)
    assert problems == ()
    assert lines == ("attrs==24.2.0", 'cattrs>=23; python_version >= "3.8"', "polars==1.9.0")


def test_problem_in_a_joined_line_names_its_first_line() -> None:
    _lines, problems = parse_requirements(
        "attrs==24.2.0\npolars \\\n --index-url https://elsewhere.example \\\n --pre\n"
    )
    assert [problem.message.split(",")[0] for problem in problems] == ["Line 2"]


@pytest.mark.parametrize(("text", "amount"), [("8Ei", LARGEST), ("9e30", LARGEST), ("7Ei", 7 * 2**60), ("many", 0)])
def test_quantity_above_the_largest_is_capped_as_kubernetes_does(text: str, amount: int) -> None:
    assert resource_amount("ephemeral-storage", text) == amount


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-2g.20gb",
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "google.com/tpu",
        "habana.ai/gaudi",
        "aws.amazon.com/neuron",
    ],
)
def test_gpu_is_known_by_the_name_of_any_vendor(name: str) -> None:
    assert is_gpu(name)


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "memory",
        "nvidia.com/gpumem",
        "aliyun.com/gpu-mem",
        "aws.amazon.com/neuroncore",
        "intel.com/sgx",
        "lab.example/gpus-fund",
    ],
)
def test_resource_merely_like_a_gpu_is_none(name: str) -> None:
    assert not is_gpu(name)


@pytest.mark.parametrize("name", ["feature/#42-clean", "fix+tests", "größe", "a@b", "v1.2", "0" * 40])
def test_branch_may_have_any_name_that_git_allows(name: str) -> None:
    assert is_revision(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "@", "-x", "--upload-pack=x", "/a", ".a", "a/", "a.", "a.lock", "a" * 201),
        *("a b", "a..b", "a~1", "HEAD^", "a:b", "a?", "a*", "a[0]", "a\\b", "a@{1}", "a//b", "a/.b", "a.lock/b"),
        *("a\n", "a\u2028b", "a\x00"),
    ],
)
def test_text_that_git_would_read_otherwise_is_no_branch(name: str) -> None:
    assert not is_revision(name)


def test_plain_text_is_what_a_terminal_leaves() -> None:
    assert (
        plain_text("\x1b[1;31mred\x1b[0m \x1b]0;title\x07a\x1b(Bb\r\n 10%|#\r100%|##\r\nend") == "red ab\n100%|##\nend"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", "0.5"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("4Gi", "4294967296"),
        ("1k", "1000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("100n", "1e-7"),
        ("-1", "-1"),
    ],
)
def test_every_form_that_kubernetes_writes_is_read_exactly(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "four", "4GB", "4 Gi", "1,5", "Gi", "1e", "0x10", "½", "1e9999", "--1", "nan", "inf", "１２", "9" * 5000],
)
def test_unparsable_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 500m"):
        parse_quantity(text)


def test_a_hundred_characters_are_read_and_no_more() -> None:
    assert parse_quantity("7".zfill(100)) == 7
    with pytest.raises(ValueError, match=f"“{'0' * 100}” is not a quantity"):
        parse_quantity("7".zfill(101))


@pytest.mark.parametrize("text", ["1e400", "-1e400", "9223372036854775808", "1000Ei"])
def test_quantity_beyond_kubernetes_limits_is_refused_before_summing(text: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_quantity(text)


def test_the_largest_that_kubernetes_counts_can_be_shown() -> None:
    assert format_cores(millicores("9223372036854775807"))


def test_parts_of_the_smallest_unit_round_up() -> None:
    assert millicores("0.1m") == 1
    assert whole("1m") == 1
    assert millicores("250m") == 250


@given(st.integers(min_value=0, max_value=10**9))
def test_millicores_survive_the_way_there_and_back(milli: int) -> None:
    assert millicores(f"{milli}m") == milli


@pytest.mark.parametrize(("milli", "text"), [(500, "0.5"), (8000, "8"), (1234, "1.23"), (0, "0"), (100000, "100")])
def test_cores_for_people(milli: int, text: str) -> None:
    assert format_cores(milli) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (4 * 2**30, "4 GiB"), (1536 * 2**20, "1.5 GiB"), (2**40, "1 TiB")]
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize("value", [None, [], {"cpu": "1"}])
def test_server_value_that_is_no_quantity_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(value)


VALID = re.compile(r"(?=.{0,63}\Z)(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@given(st.text(max_size=200))
def test_any_text_becomes_a_valid_value(text: str) -> None:
    assert VALID.fullmatch(label_value(text))


@given(st.text(max_size=100), st.text(max_size=100))
def test_two_names_never_share_a_value(text: str, other: str) -> None:
    assert text == other or label_value(text) != label_value(other)


def test_value_of_a_name_is_readable() -> None:
    assert label_value("alice.smith_2") == "alice.smith_2"
    assert label_value("Zoë Müller").startswith("Zo-M-ller-")
