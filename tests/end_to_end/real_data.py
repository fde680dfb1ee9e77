"""What an admin would enter into a new installation: accounts, tiers, environments, a project. Run with its settings.

Takes the accounts' password from the environment variable PASSWORD; the superuser is made by `createsuperuser`, as the
installation guide says.
"""

import os

import django


def main() -> None:
    django.setup()
    from django.contrib.auth.models import Group

    from grid.models import Environment, HardwareTier, Project, User

    password = os.environ["PASSWORD"]
    scientist = User.objects.create_user("scientist", password=password)
    operator = User.objects.create_user("operator", password=password)
    operator.groups.add(Group.objects.get_or_create(name="operators")[0])
    for tier in (
        HardwareTier(id="small", name="Small", node_pool="default", cores="1", memory="2Gi", is_default=True),
        # Little work makes it busy, and what an idle Dask worker uses, up to 50m on a slow machine, is less than half of a target.
        HardwareTier(id="worker", name="Worker", node_pool="default", cores="150m", memory="1Gi"),
    ):
        tier.full_clean()
        tier.save()
    lab = Environment(
        id="jupyterlab",
        name="JupyterLab",
        image="compute-grid/jupyterlab:4.6",
        port=8888,
        command=[
            *("jupyter", "lab", "--no-browser", "--allow-root", "--ip=$(POD_IP)", "--port={port}"),
            *("--ServerApp.base_url={base_url}", "--ServerApp.allow_remote_access=True"),
        ],
    )
    dask = {"image": "compute-grid/dask:2026.8", "frameworks": {"dask": "2026.8.0"}}
    for environment in (
        lab,
        Environment(id="dask-script", name="Dask script", kind="job", command=["python", "main.py"], **dask),
        Environment(id="dask-cluster", name="Dask cluster", kind="cluster", **dask),
    ):
        environment.full_clean()
        environment.save()
    Project.objects.start(id="churn", name="Customer churn", owner=scientist)


if __name__ == "__main__":
    main()
