"""Makes at the start what the first page would otherwise make while everybody waits: it would block the loop for 60 ms and more."""

from pathlib import Path

from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.urls import get_resolver
from django.utils.formats import number_format


def preload() -> None:
    """Import all views, compile all templates and read the formats of numbers."""
    _ = get_resolver().url_patterns
    number_format(1)
    for engine in engines.all():
        assert isinstance(engine, DjangoTemplates)
        for folder in map(Path, engine.engine.dirs):
            for path in folder.rglob("*.html"):
                engine.get_template(str(path.relative_to(folder)))
