"""Verifies that no entry of the audit log was changed, removed or inserted since it was sealed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from grid.audit.chain import ChainBroken, Link
from grid.audit.sealing import MOST_COUNTED, unsealed_count, verify
from grid.core.wording import plural


class Command(BaseCommand):
    help = "Verify the chain of the audit log; name the first entry that is missing or wrong, with exit code 1."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--link",
            action="append",
            default=[],
            metavar="NUMBER:HASH",
            help="a link that an earlier run or the controller's log said; may be given several times",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        links = {text: Link.parse(text) for text in options["link"]}
        wrong = [text for text, link in links.items() if link is None]
        if wrong:
            raise CommandError(f"{wrong[0]!r} is no link. A link is a number, a colon and 64 hexadecimal digits.")
        try:
            chain = verify([link for link in links.values() if link is not None])
        except ChainBroken as error:
            raise CommandError(f"{error} Keep a copy of the database before anything else is done.") from error
        more = plural(unsealed := unsealed_count(), "entry", "entries")
        more = f"more than {MOST_COUNTED:,} entries" if unsealed > MOST_COUNTED else more
        self.stdout.write(f"{plural(chain.count, 'sealed entry', 'sealed entries')} verified, none changed or missing.")
        if chain.anchor.number:
            self.stdout.write(
                f"Retention has deleted those up to {chain.anchor.number:,}; their link is {chain.anchor}"
            )
        self.stdout.write(f"Not sealed yet: {more}.")
        too_old = [str(link) for link in links.values() if link is not None and link.number < chain.anchor.number]
        if too_old:
            self.stdout.write(f"Not compared, because retention has deleted that entry: {', '.join(too_old)}")
        self.stdout.write(f"Keep this link somewhere else, for --link: {chain.head}")
