"""One word for one idea (docs/glossary.md), as far as a program can tell."""

import ast
from collections import Counter
from pathlib import Path

from django.conf import settings

# Django gives these their names.
NAMED_BY_OTHERS = {"Command", "Migration"}


def test_a_public_class_has_a_name_that_occurs_once() -> None:
    names = Counter(
        node.name
        for package in ("grid", "dashboard")
        for path in Path(settings.BASE_DIR, package).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert names, "nothing was read"
    assert {name for name, times in names.items() if times > 1} == NAMED_BY_OTHERS
