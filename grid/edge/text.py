"""Text from outside, made fit for a line of log."""


def cleaned(value: str, most: int = 100) -> str:
    """`value` without control characters, which could feign further lines, and cut after `most` characters."""
    start = value[:most]
    if not start.isprintable():
        start = "".join(
            # The codec for this is looked up, which fails while the interpreter shuts down; ascii() is not.
            character if character.isprintable() else ascii(character)[1:-1]
            for character in start
        )
    return start if len(value) <= most else f"{start}… ({len(value)} characters)"
