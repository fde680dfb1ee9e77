"""What people and programs write, as it comes from the field: requirements of pip-compile, quantities at the limit, names of GPUs."""

import pytest

from grid.core.gitnames import is_revision
from grid.core.quantity import LARGEST, is_gpu
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
