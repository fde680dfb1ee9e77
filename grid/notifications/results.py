"""What became of a try to send something."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SendResult:
    """`error` is a sentence for the person it was for, "" when it was sent; a final one is not tried again."""

    error: str = ""
    is_final: bool = False

    @property
    def is_sent(self) -> bool:
        return not self.error


SENT = SendResult()
