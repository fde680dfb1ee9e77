"""Text from outside, made fit for a line of log."""


def cleaned(value: str, most: int = 100) -> str:
    """`value` without control characters, which could feign further lines, and cut after `most` characters."""
    start = value[:most]
    if not start.isprintable():
        start = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode() for character in start
        )
    return start if len(value) <= most else f"{start}… ({len(value)} characters)"
