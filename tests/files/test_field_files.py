"""Files, notebooks, keys and answers of Git servers as they come from the field."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dashboard.files.viewmodels.files import ShownFile, file
from dashboard.files.viewmodels.notebooks import NotANotebook, notebook
from grid.diagnosis.remotetroubles import explain
from grid.files.repositories import Repository, TreeEntry
from grid.files.stored_remotes import _with_line_breaks, _wrong_key

SIZES = "Ort;Größe\r\nKöln;3\r\n"


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
