import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ENV = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings"}

_CODE = """
import json, sys
import grid.asgi
before = set(sys.modules)
from django.template import engines
from django.test import Client
from django.utils.formats import number_format
known = {template.origin.template_name for loader in engines["django"].engine.template_loaders
         for template in loader.get_template_cache.values()}
Client().get("/no-such-page/")
number_format(1)
own = [name for name in sys.modules if name not in before and name.split(".")[0] in ("dashboard", "grid")]
own += [name for name in sys.modules if name not in before and name.endswith(".formats")]
print(json.dumps({"imported": own, "known": sorted(known)}))
"""


def test_web_process_preloads_views_and_templates() -> None:
    run = subprocess.run([sys.executable, "-c", _CODE], cwd=ROOT, capture_output=True, text=True, timeout=60, env=_ENV)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["imported"] == []
    folder = ROOT / "templates"
    assert answer["known"] == sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html"))
