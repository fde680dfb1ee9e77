"""`path` for the URLs of rooms: with it the converters of ids and names are registered."""

from django.urls import path, register_converter

from dashboard.shell.ids import IdConverter, NameConverter

__all__ = ["path"]

register_converter(IdConverter, "id")
register_converter(NameConverter, "name")
