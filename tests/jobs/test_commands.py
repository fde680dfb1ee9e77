"""What a job's command says before it runs."""

import pytest

from grid.jobs.commands import script_name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ('python train.py --rate "$rate"', "train"),
        ("python src/deep/fit-model.py", "fit-model"),
        ("cd work\n./prepare.sh && python train.py", "prepare"),
        ("jupyter nbconvert --execute 'Monthly.ipynb'", "Monthly"),
        ("Rscript übersicht.R", "übersicht"),
        ("python -m churn.training.fit --all", "fit"),
        ("python3.12 -m fit", "fit"),
        ("echo $rate > result.csv", ""),
        ("pip install x.pyz", ""),
        ("", ""),
    ],
)
def test_job_is_named_after_its_script(command: str, name: str) -> None:
    assert script_name(command) == name
