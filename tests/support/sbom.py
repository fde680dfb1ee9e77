"""Which software the product has in it, as CycloneDX JSON: `python -m tests.support.sbom FILE`.

The packages of requirements.lock come with their licences from what is installed, by cyclonedx-py, which knows also which needs which; what
only development needs is left out. Scripts and styles that pages load are added: no package index knows them.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tests.support.advisories import ROOT, locked

# By name on npm: the file that has its version in it, how, and its licence.
SCRIPTS = {
    "htmx.org": (
        Path(str(files("django_htmx"))) / "static/django_htmx/htmx-4.min.js",
        r'version="([\w.-]+)"',
        "0BSD",
        "https://htmx.org",
    ),
    "uplot": (
        ROOT / "static/vendor/uplot/uPlot.iife.min.js",
        r"^/\*! \S+ \(v([\w.-]+)\)",
        "MIT",
        "https://github.com/leeoniya/uPlot",
    ),
    "inter-ui": (ROOT / "static/vendor/inter/README.md", r"`inter-ui` ([\d.]+\d)", "OFL-1.1", "https://rsms.me/inter/"),
}
# Of packages whose metadata name none: as their own licence files say.
LICENCES = {"protobuf": "BSD-3-Clause"}


def sbom() -> dict[str, Any]:
    """Return the bill of materials. Raise ValueError for a locked package that is not installed as it is locked."""
    command = [
        sys.executable,
        "-m",
        "cyclonedx_py",
        "environment",
        "--output-reproducible",
        "--no-validate",
        "--of",
        "JSON",
    ]
    made = subprocess.run(
        [*command, "--pyproject", str(ROOT / "pyproject.toml"), sys.executable], capture_output=True, check=True
    )
    bom: dict[str, Any] = json.loads(made.stdout)
    versions = locked([ROOT / "requirements.lock"])
    packages = [
        component
        for component in bom["components"]
        if versions.get(canonicalize_name(component["name"])) == component.get("version")
    ]
    if absent := versions.keys() - {canonicalize_name(package["name"]) for package in packages}:
        raise ValueError(f"Not installed as they are locked: {', '.join(sorted(absent))}. Run: make setup")
    for package in packages:
        if (licence := LICENCES.get(package["name"])) and not package.get("licenses"):
            package["licenses"] = _licence(licence)
    scripts = list(_scripts())
    root = bom["metadata"]["component"]["bom-ref"]
    kept = {root, *(package["bom-ref"] for package in packages)}
    bom["components"] = [*packages, *scripts]
    bom["dependencies"] = [
        dependency
        | ({"dependsOn": [ref for ref in dependency["dependsOn"] if ref in kept]} if "dependsOn" in dependency else {})
        for dependency in bom["dependencies"]
        if dependency["ref"] in kept
    ]
    [of_root] = [dependency for dependency in bom["dependencies"] if dependency["ref"] == root]
    of_root["dependsOn"] = sorted({*of_root.get("dependsOn", ()), *(script["bom-ref"] for script in scripts)})
    return bom


def _scripts() -> Iterator[dict[str, Any]]:
    for name, (path, pattern, licence, website) in SCRIPTS.items():
        content = path.read_bytes()
        [version] = set(re.findall(pattern, content.decode(), re.MULTILINE))
        purl = f"pkg:npm/{name}@{version}"
        yield {
            "bom-ref": purl,
            "type": "library",
            "name": name,
            "version": version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()}],
            "licenses": _licence(licence),
            "externalReferences": [{"type": "website", "url": website}],
        }


def _licence(id: str) -> list[dict[str, Any]]:
    return [{"license": {"id": id, "acknowledgement": "declared"}}]


def invalid(text: str) -> str:
    """Return what CycloneDX' schema says against a bill of materials; "" when it is valid."""
    # Importing it takes seconds, which all who collect the tests would wait.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    return str(error or "")


def main(path: str) -> int:
    text = json.dumps(sbom(), indent=1)
    if problem := invalid(text):
        sys.stderr.write(f"The bill of materials is not valid: {problem}\n")
        return 1
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    sys.stdout.write(f"{path}: {len(json.loads(text)['components'])} components.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
