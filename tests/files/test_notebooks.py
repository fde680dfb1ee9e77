"""Notebooks and other files from the field: what is shown of good ones, and that nothing of bad ones is more than text."""

import base64
import json
import subprocess
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.template.loader import render_to_string
from django.test import Client

from dashboard.files.viewmodels.files import ShownFile, file
from dashboard.files.viewmodels.notebooks import (
    ALL_TEXT,
    NOTEBOOK_BYTES,
    SHOWN_CELLS,
    SHOWN_IMAGES,
    SHOWN_LINES,
    SHOWN_OUTPUTS,
    SHOWN_TEXT,
    NotANotebook,
    notebook,
)
from grid.diagnosis.remotetroubles import explain
from grid.edge import textwork
from grid.edge.textwork import TextTooLong, TextWorkBusy, TextWorkFailed
from grid.files.changing import upload
from grid.files.repositories import Repositories, Repository, TreeEntry
from grid.files.stored_remotes import _with_line_breaks, _wrong_key
from grid.models import Project
from tests.files.test_files import PIXEL
from tests.support.textwork import FailingWorkers

EVIL = "</code></pre><script>alert(1)</script><img src=x onerror=alert(1)>[x](javascript:alert(1))\x1b]8;;http://x\x07"
PNG = base64.b64encode(PIXEL).decode()
SIZES = "Ort;Größe\r\nKöln;3\r\n"


def made(*cells: Any, **fields: Any) -> bytes:
    return json.dumps({"nbformat": 4, "cells": list(cells), **fields}).encode()


def code(*outputs: Any, source: Any = "1", **fields: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), **fields}


def data(**forms: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {name.replace("__", "/"): value for name, value in forms.items()}}


def html(content: bytes) -> str:
    return render_to_string("files/fragments/notebook.html", {"notebook": notebook(content)})


def test_code_text_and_images_are_shown() -> None:
    stream = {"output_type": "stream", "name": "stdout", "text": ["\x1b[31mred\x1b[0m\n", "a\rb <\n"]}
    failed = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\x1b[1mTrace", "back"]}
    shown = html(
        made(
            {"cell_type": "markdown", "source": ["# Head\n", "*a* <b>"]},
            code(stream, failed, data(image__png=PNG, text__plain="<Figure>"), source="print(1)", execution_count=7),
            {"cell_type": "raw", "source": "as it is"},
        )
    )
    assert "# Head\n*a* &lt;b&gt;" in shown
    assert "[7]" in shown and "<code>print(1)</code>" in shown
    assert '<span class="ansi-1">red</span>\nb &lt;\n' in shown
    assert '<span class="ansi-bold">Trace</span>\nback' in shown
    assert f'src="data:image/png;base64,{PNG}"' in shown and "Figure" not in shown
    assert "as it is" in shown


def test_html_svg_and_javascript_are_left_out_and_said() -> None:
    evil = "<script>alert(1)</script>"
    svg, both = {"image/svg+xml": evil, "application/javascript": evil}, {"text/html": evil, "text/plain": "a  b"}
    shown = html(
        made(code({"output_type": "display_data", "data": svg}, {"output_type": "execute_result", "data": both}))
    )
    assert "Its JavaScript and SVG is left out" in shown and "Its HTML is left out" in shown
    assert "a  b" in shown and "alert" not in shown


@pytest.mark.parametrize("image", [EVIL, PNG + '"', "PHN2Zz4=", "", [1], "iVBORw0KGg" + "A" * 2**22])
def test_an_image_that_is_none_is_left_out(image: Any) -> None:
    shown = html(made(code(data(image__png=image), data(image__jpeg=image))))
    assert "<img" not in shown and shown.count("is left out") == 2


def test_a_script_in_every_field_is_text() -> None:
    kinds = ("stream", "error", "display_data", "execute_result", EVIL)
    outputs = [
        {
            "output_type": kind,
            "name": EVIL,
            "text": EVIL,
            "ename": EVIL,
            "evalue": EVIL,
            "traceback": [EVIL],
            "data": forms,
        }
        for kind in kinds
        for forms in ({"text/plain": EVIL}, {"text/html": EVIL}, {EVIL: EVIL}, {"image/png": EVIL})
    ]
    cells = [code(*outputs, source=EVIL, execution_count=EVIL, metadata={EVIL: EVIL}, id=EVIL)]
    cells += [
        {"cell_type": kind, "source": EVIL, "attachments": {EVIL: {"image/png": EVIL}}}
        for kind in ("markdown", "raw", EVIL)
    ]
    shown = html(made(*cells, metadata={"language_info": {"name": EVIL}}))
    assert shown.encode()
    for tag in ("<script", "<img", "<a "):
        assert tag not in shown
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"\xff\xfe", b"no", b"[]", b"1e999", b'{"cells": {}}', b'{"worksheets": [{"cells": []}]}'),
        *(b"[" * 200_000, b'{"a":' * 200_000, b'{"cells": [' + b"[" * 100_000 + b"]", b"9" * 5000),
        b'{"cells": [{"source": "\\ud800"}]}',  # is no text: half a character
    ],
)
def test_invalid_notebook_is_refused_with_a_sentence(content: bytes) -> None:
    with pytest.raises(NotANotebook, match="Its text is shown"):
        notebook(content)


@pytest.mark.parametrize("wrong", [None, 1, "x", {}, [[1]], [None], {"a": []}, 10**30])
def test_fields_of_wrong_types_are_passed_over(wrong: Any) -> None:
    output = {"output_type": wrong, "text": wrong, "data": wrong, "traceback": wrong}
    outputs = [wrong, output, *({**output, "output_type": kind} for kind in ("stream", "error", "display_data"))]
    outputs.append(data(text__plain=wrong, image__png=wrong))
    cell = code(*outputs, source=wrong, execution_count=wrong)
    shown = html(made(wrong, cell, {**cell, "outputs": wrong, "cell_type": wrong}, metadata={"language_info": wrong}))
    assert "Cell 3" in shown


def test_a_giant_notebook_is_cut() -> None:
    text = "x" * (SHOWN_TEXT + 1)
    stream = {"output_type": "stream", "text": text}
    cells = [code(*[stream] * (SHOWN_OUTPUTS + 5), source=text)] * 3 + [code(data(image__png=PNG))] * (SHOWN_CELLS + 5)
    shown = notebook(made(*cells))
    assert len(shown.cells) == SHOWN_CELLS and shown.note.startswith("The cells after the first 300 are left out")
    assert shown.cells[0].outputs[-1].note == "The outputs after the first 20 are left out."
    assert len(shown.cells[0].text) == SHOWN_TEXT and "cut here" in shown.cells[0].note
    texts = [text for cell in shown.cells for text in (cell.text, *(output.html for output in cell.outputs))]
    assert sum(map(len, texts)) <= ALL_TEXT
    images = [output for cell in shown.cells for output in cell.outputs if output.kind == "image"]
    assert len(images) == SHOWN_IMAGES


@pytest.mark.parametrize(
    "outer",
    [
        '{"cells": [], "other": [%s]}',
        '{"cells": [%s]}',
        '{"cells": [{"cell_type": "code", "outputs": [%s]}]}',
        '{"cells": [{"source": [%s]}]}',
        '{"cells": [{"cell_type": "code", "outputs": [{"output_type": "display_data", "data": {"text/plain": [%s]}}]}]}',
    ],
)
@pytest.mark.parametrize("part", ['"a"', '{"a":[[[]]]}'])
def test_hostile_notebook_is_skipped_without_allocating_its_parts(outer: str, part: str) -> None:
    content = (outer % ",".join([part] * 50_000)).encode()
    tracemalloc.start()
    try:
        with suppress(NotANotebook):
            notebook(content)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 500_000  # json.loads takes megabytes for most of them


def test_a_text_of_many_lines_is_cut() -> None:
    shown = notebook(made(code(source=["a\n"] * (SHOWN_LINES + 1))))
    assert shown.cells[0].text == "a\n" * SHOWN_LINES and "cut here" in shown.cells[0].note
    assert notebook(b"\xef\xbb\xbf" + made(code(source=["a\n"] * SHOWN_LINES))).cells[0].note == ""


@pytest.fixture
def notebooks(project: Project, volume: Path) -> None:
    repository = Repositories(volume).of("churn")
    repository.create()
    files = {"good.ipynb": made(code(source="<b>")), "bad.ipynb": b"<script>", "big.ipynb": b" " * (NOTEBOOK_BYTES + 1)}
    upload(repository, "", files, author="alice")


@pytest.mark.usefixtures("notebooks")
def test_file_page_shows_notebook_or_explains_why_not(owner: Client) -> None:
    def page(query: str) -> str:
        answer = owner.get(f"/projects/churn/files/?path={query}")
        assert answer.status_code == 200
        return answer.content.decode()

    assert 'class="notebook"' in page("good.ipynb") and "<code>&lt;b&gt;</code>" in page("good.ipynb")
    assert "&quot;cells&quot;" in page("good.ipynb&as=text")
    assert "This is not a notebook" in page("bad.ipynb") and "&lt;script&gt;" in page("bad.ipynb")
    assert "Notebooks over 8 MiB are shown as text" in page("big.ipynb")


@pytest.mark.usefixtures("notebooks")
@pytest.mark.parametrize(
    ("error", "sentence"),
    [(TextTooLong(), "This notebook takes too long to show. Download it."), (TextWorkBusy(), "Try again in a moment.")],
)
def test_unreadable_notebook_is_shown_as_text(
    owner: Client, monkeypatch: pytest.MonkeyPatch, error: TextWorkFailed, sentence: str
) -> None:
    monkeypatch.setattr(textwork, "workers", FailingWorkers(error))
    page = owner.get("/projects/churn/files/?path=good.ipynb").content.decode()
    assert sentence in page and "&quot;cells&quot;" in page and 'class="notebook"' not in page


@pytest.mark.parametrize(
    ("form", "named"),
    [
        ("text/html", "HTML"),
        ("application/vnd.plotly.v1+json", "Plotly"),
        ("application/vnd.bokehjs_exec.v0+json", "Bokeh"),
        ("application/vnd.jupyter.widget-view+json", "widget"),
    ],
)
@pytest.mark.parametrize("shown", [{"text/plain": "Figure()"}, {"image/png": "iVBORw0KGgAA"}])
def test_form_left_out_is_named_with_what_is_shown(form: str, named: str, shown: dict[str, str]) -> None:
    result = {"output_type": "display_data", "data": {form: {}, **shown}}
    cells = [{"cell_type": "code", "source": "", "outputs": [result]}]
    [output] = notebook(json.dumps({"cells": cells}).encode()).cells[0].outputs
    assert f"Its {named} is left out" in output.note
    assert output.html or output.source


def shown(content: bytes, *, size: int = 0) -> ShownFile:
    entry = TreeEntry("sizes.csv", "sizes.csv", "0" * 40, "100644", size or len(content))
    return file("sizes.csv", entry, content)


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (SIZES.encode(), ""),
        (SIZES.encode("utf-8-sig"), ""),
        (SIZES.encode("cp1252"), "Windows-1252"),
        (SIZES.encode("utf-16"), "UTF-16"),
    ],
)
def test_text_of_another_encoding_is_shown_and_named(content: bytes, note: str) -> None:
    answer = shown(content)
    assert answer.text == SIZES
    assert note in answer.note
    assert bool(answer.note) == bool(note)


def test_text_of_no_known_encoding_says_so() -> None:
    answer = shown(b"a\x81\x8d\x9d")
    assert answer.text == "a���"
    assert "not UTF-8" in answer.note


def test_text_is_never_cut_inside_a_character() -> None:
    answer = shown("Größe".encode()[:4], size=7)
    assert answer.text == "Grö"[: len(answer.text)]
    assert "�" not in answer.text
    assert "Only the first" in answer.note


def test_notebook_that_is_not_utf8_is_refused_in_words() -> None:
    raw = '{"nbformat":4,"metadata":{},"cells":[{"cell_type":"code","source":"maß = 7","outputs":[]}]}'.encode(
        "latin-1"
    )
    with pytest.raises(NotANotebook, match="not UTF-8"):
        notebook(raw)


def test_branch_with_a_line_separator_breaks_no_list(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *author, *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    assert Repository(tmp_path / ".git").branches() == []
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("branch", "clean\u2028up")
    assert [branch.name for branch in Repository(tmp_path / ".git").branches()] == ["main", "clean\u2028up"]


def test_push_of_a_file_over_the_limit_names_it() -> None:
    declined = "\n ! [remote rejected] main -> main (pre-receive hook declined)"
    named = explain(
        "remote: error: File data/all.parquet is 231.00 MB; this exceeds the file size limit of 100.00 MB" + declined
    )
    assert named.startswith("The server takes no file as large as data/all.parquet.")
    assert explain("remote: fatal: pack exceeds the maximum object size" + declined).startswith(
        "The server takes no file as large as one of"
    )
    assert "protected" in explain(declined)


def test_key_whose_line_breaks_became_blanks_is_repaired() -> None:
    key = (
        Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode().strip()
    )
    folded = key.replace("\n", " ")
    assert _with_line_breaks(folded) == key
    assert list(_wrong_key(_with_line_breaks(folded))) == []
    assert _with_line_breaks("ghp_token") == "ghp_token"
