"""Tiny packages as wheels, so that tests install without an index."""

import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str, *, needs: str = "", program: bool = False) -> Path:
    """Return the wheel of a package whose module says its version as `VERSION`; with a program of its name, on request."""
    folder.mkdir(parents=True, exist_ok=True)
    file, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {needs}\n" if needs else ""
    contents = {
        f"{name}.py": f"VERSION = {version!r}\n\n\ndef main():\n    print(VERSION)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if program:
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}:main\n"
    with zipfile.ZipFile(file, "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"]))
    return file
