"""The product's settings with what tests need: an own folder, fast passwords, no surprises from the environment."""

import atexit
import os
import shutil
import tempfile

for _name in ("KUBECONFIG", "DATABASE_URL", "GRID_DEMO", "GRID_PROMETHEUS_URL"):
    os.environ.pop(_name, None)
if not (_var := os.environ.get("GRID_TEST_VAR", "")):
    _var = tempfile.mkdtemp(prefix="compute-grid-tests-")
    atexit.register(shutil.rmtree, _var, ignore_errors=True)
os.environ["GRID_VAR"] = _var
if _database := os.environ.get("TEST_DATABASE_URL", ""):
    os.environ["DATABASE_URL"] = _database
os.environ["GRID_SECRET_KEY"] = "tests-only"

from grid.settings import *  # noqa: E402, F403

os.environ.pop("DATABASE_URL", None)  # processes that tests start have databases of their own

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_AUTOREFRESH = True
DEMAND_IS_SERVED = True
PACKAGE_ADVISORIES = ""  # no test asks the internet
