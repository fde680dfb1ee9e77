"""Makes the virtual environment in .venv, or brings it up to date: `setup_environment.py run|dev`.

Plain standard library, and syntax that old Pythons can read too, so that a wrong Python gets a sentence instead of a traceback.
"""

from __future__ import print_function

import glob
import hashlib
import os
import subprocess
import sys
import time

NEEDED = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
UV_LOCK = "requirements-uv.lock"
LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}


def stop(sentence):
    print(sentence, file=sys.stderr)
    sys.exit(1)


def find_python():
    """This Python when it is new enough, else a newer one on the PATH."""
    if sys.version_info >= NEEDED:
        return sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for candidate in sorted(glob.glob(os.path.join(folder, "python3.1[1-9]"))):
            return candidate
    stop(
        "Compute Grid needs Python %d.%d or later, and this is %d.%d: install a newer one, or name it: make run PYTHON=/path/to/python3"
        % (NEEDED + tuple(sys.version_info[:2]))
    )


def make_venv(python):
    if os.path.exists(os.path.join(VENV, "bin", "pip")):
        return
    try:
        os.makedirs(VENV, exist_ok=True)
        open(os.path.join(VENV, ".writable"), "w").close()
    except OSError as error:
        stop("Cannot write to %s (%s): use a folder that you may write to." % (ROOT, error.strerror))
    print("Making a virtual environment in .venv (once) ...", flush=True)
    result = subprocess.run([python, "-m", "venv", "--clear", VENV], capture_output=True, text=True)
    if result.returncode:
        stop("Python could not make a virtual environment; on Debian install it with: apt-get install python3-venv")


def install(lock):
    path = os.path.join(ROOT, lock)
    with open(path, "rb") as file:
        wanted = hashlib.sha256(file.read()).hexdigest()
    stamp = os.path.join(VENV, "installed-" + lock)
    if os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == wanted:
                return
    began = time.time()
    print("Installing the packages of %s (once) ..." % lock, end=" ", flush=True)
    python = os.path.join(VENV, "bin", "python")
    # uv installs in seconds what takes pip half a minute. Where it cannot be had, or does not serve here, the installer takes pip.
    uv = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    subprocess.run(uv + ["--require-hashes", "-r", os.path.join(ROOT, UV_LOCK)], capture_output=True)
    installer = [python, "-m", "grid.sandbox.installer", "--require-hashes", "-r", path]
    # Of a success nobody reads what the installer warns of.
    result = subprocess.run(installer, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        print("failed.", flush=True)
        print((result.stdout + result.stderr).strip(), file=sys.stderr)
        stop("The packages in %s could not be installed: see pip's message above; is the network reachable?" % lock)
    print("done in %.0f s." % (time.time() - began), flush=True)
    try:
        with open(stamp, "w") as file:
            file.write(wanted)
    except OSError as error:
        stop("Cannot write to %s (%s): use a folder that you may write to." % (VENV, error.strerror))


if __name__ == "__main__":
    make_venv(find_python())
    install(LOCKS[sys.argv[1]])
