"""What an older server does not have: promises about it are skipped there, with the version that it came with."""

import pytest

Version = tuple[int, int]


def came_with(version: Version, least: Version, what: str) -> None:
    if version < least:
        pytest.skip(f"{what} came with Kubernetes {least[0]}.{least[1]}; this server is {version[0]}.{version[1]}")
