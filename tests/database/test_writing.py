"""What is said when a folder takes no file."""

from pathlib import Path

import pytest

from grid.database.write_probe import LEAST_FREE, folder_problems


def test_folder_with_space_has_no_problem_and_stays_empty(tmp_path: Path) -> None:
    assert folder_problems({"the folder": tmp_path}, free_bytes=lambda path: LEAST_FREE) == []
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_nearly_full_is_a_problem(tmp_path: Path) -> None:
    (problem,) = folder_problems({"the folder": tmp_path}, free_bytes=lambda path: 3 * 2**20)
    assert problem == (
        "The disk of the folder is full: 3 MiB are free, and 32 MiB are needed. Delete files, or give it a larger disk."
    )


@pytest.mark.parametrize("path", ["/proc", "/nowhere"])
def test_a_folder_that_takes_no_file_is_a_problem(path: str) -> None:
    (problem,) = folder_problems({"the folder": Path(path)})
    assert problem.startswith("Nothing can be written to the folder: ")
