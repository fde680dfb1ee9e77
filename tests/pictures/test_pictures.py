"""The guides and their pictures belong together, and taking them without a browser says so."""

import re
import zlib
from pathlib import Path

import pytest

from tests.end_to_end.grid import ROOT
from tests.pictures import __main__ as pictures, project_scenes, scenes
from tests.pictures.png import encode

_PICTURE = re.compile(r"images/([\w-]+)\.png")
_TAKEN = re.compile(r'studio\.take\(\w+, "([\w-]+)"\)')
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("guide-*.md"))]


def test_shown_pictures_exist_and_are_taken_by_the_script() -> None:
    shown = {name for page in PAGES for name in _PICTURE.findall(page.read_text())}
    assert len(shown) >= 4
    assert shown == {file.stem for file in pictures.FOLDER.glob("*.png")}
    taken = Path(scenes.__file__).read_text() + Path(project_scenes.__file__).read_text()
    assert shown <= set(_TAKEN.findall(taken))


def test_without_a_browser_it_says_so_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRID_CHROMIUM", "")
    monkeypatch.setenv("PATH", "")
    assert pictures.main() == 1
    assert "install the package chromium-headless-shell" in capsys.readouterr().err


def test_a_picture_keeps_its_pixels() -> None:
    png = encode(2, 2, palette=b"\xff\x00\x00\x00\x00\xff", numbers=b"\x00\x01\x01\x00")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    length = int.from_bytes(png[8:12])
    assert (length, png[12:16], png[16:24]) == (13, b"IHDR", b"\0\0\0\x02\0\0\0\x02")
    start = png.index(b"IDAT")
    packed = png[start + 4 : start + 4 + int.from_bytes(png[start - 4 : start])]
    assert zlib.decompress(packed) == b"\0\x00\x01\0\x01\x00"  # each row begins with its filter, none
