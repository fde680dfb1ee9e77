"""Collects the texts of the product for translators."""

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    help = "Collect the texts of the product, also the nouns that plural() counts, into grid/locale/LANGUAGE/LC_MESSAGES/django.po."
    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=plural:2,3"]
