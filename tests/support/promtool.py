"""Has Prometheus' own tool judge what a process tells."""

import shutil
import subprocess

import pytest

PROMTOOL = shutil.which("promtool")


def complaints(metrics: str) -> str:
    """What `promtool check metrics` says against names, units and format; "" when nothing."""
    if PROMTOOL is None:
        pytest.skip("promtool is not installed; it comes with Debian's package prometheus")
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=metrics, capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).strip() if done.returncode else ""
