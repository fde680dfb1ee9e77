"""Decoding into Structs by several threads at once."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Kills its process within some thirty rounds without `prepared`: another module's annotations are read while other threads decode.
THREADS = """
import sys, threading, types
import msgspec
from grid.core.decoding import prepared
STRUCTS = '''
from __future__ import annotations
from typing import Annotated
import msgspec
class Leaf(msgspec.Struct):
    size: Annotated[int, msgspec.Meta(ge=0)] = 1
    texts: "dict[str, list[int]]" = {}
class Branch(msgspec.Struct):
    leaf: Leaf; leaves: "list[Leaf]"; others: "dict[str, Leaf]"
class Tree(msgspec.Struct):
    branch: Branch; branches: "list[Branch]"; nothing: "Branch | None" = None
'''
TREE = {"branch": {"leaf": {"size": 1}, "leaves": [{"size": 2}], "others": {}}, "branches": []}
sys.setswitchinterval(1e-6)
for number in range(300):
    module = types.ModuleType(f"structs{number}")
    sys.modules[module.__name__] = module
    exec(STRUCTS, module.__dict__)
    begin = threading.Barrier(4)
    def decode():
        begin.wait()
        assert msgspec.convert(TREE, prepared(module.Tree)).branch.leaves[0].size == 2
    threads = [threading.Thread(target=decode) for _ in range(4)]
    for each in threads: each.start()
    for each in threads: each.join()
"""
PLAIN = {"dict", "list", "tuple", "str", "int", "Any", "RawObject", "msgspec", "Raw"}  # no Struct


def test_threads_that_decode_into_a_new_struct_at_once_do_not_end_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _types_decoded_into(tree: ast.AST) -> Iterator[ast.expr]:
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        match ast.unparse(call.func):
            case "msgspec.convert":
                yield named.get("type") or call.args[1]
            case "msgspec.json.decode" if "type" in named:
                yield named["type"]
            case "msgspec.json.Decoder" if call.args:
                yield call.args[0]


def test_every_struct_is_prepared_where_it_is_decoded_into() -> None:
    unprepared = []
    for path in [*(ROOT / "grid").rglob("*.py"), *(ROOT / "dashboard").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        if "msgspec" not in text or path == ROOT / "grid" / "core" / "decoding.py":
            continue
        for kind in _types_decoded_into(ast.parse(text)):
            names = {each.id for each in ast.walk(kind) if isinstance(each, ast.Name)}
            if names - PLAIN and not (isinstance(kind, ast.Call) and ast.unparse(kind.func) == "prepared"):
                unprepared.append(f"{path.relative_to(ROOT)}:{kind.lineno}: {ast.unparse(kind)}")
    assert not unprepared
