"""Makes text from outside fit for a line of log."""


def cleaned(value: str, most: int = 100) -> str:
    """Return `value` with control characters escaped, which could forge log lines, and cut after `most` characters."""
    start = value[:most]
    if not start.isprintable():
        start = "".join(
            # ascii() needs no codec lookup, which fails while the interpreter shuts down.
            character if character.isprintable() else ascii(character)[1:-1]
            for character in start
        )
    return start if len(value) <= most else f"{start}… ({len(value)} characters)"
