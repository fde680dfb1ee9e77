"""The product's settings with what tests need: an own folder, fast passwords, no surprises from the environment."""

import os
import tempfile

for _name in ("KUBECONFIG", "DATABASE_URL", "GRID_DEMO", "GRID_PROMETHEUS_URL"):
    os.environ.pop(_name, None)
os.environ["GRID_VAR"] = os.environ.get("GRID_TEST_VAR") or tempfile.mkdtemp(prefix="compute-grid-tests-")
os.environ["GRID_SECRET_KEY"] = "tests-only"

from grid.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_AUTOREFRESH = True
DEMAND_IS_SERVED = True
