"""The only exception that the client raises for a failed request."""

from typing import Any

import msgspec

_SHOWN = 500


class ApiError(Exception):
    """A refused or failed request. `status` is the HTTP code (0: no answer, or an unreadable one), `reason` Kubernetes' word."""

    def __init__(self, status: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}

    @classmethod
    def from_body(cls, status: int, body: bytes) -> "ApiError":
        """Return the error in a `Status` object, or in whatever a proxy on the way answered instead."""
        try:
            parsed = msgspec.json.decode(body)
        except msgspec.DecodeError:
            parsed = None
        if not isinstance(parsed, dict):
            return cls(status, "", body[:_SHOWN].decode(errors="replace").strip())
        return cls.from_status(parsed, default=status)

    @classmethod
    def from_status(cls, answer: dict[str, Any], *, default: int = 500) -> "ApiError":
        code = answer.get("code")
        details = answer.get("details")
        return cls(
            code if isinstance(code, int) else default,
            str(answer.get("reason", "")),
            str(answer.get("message", "")),
            details if isinstance(details, dict) else None,
        )

    @property
    def unreachable(self) -> bool:
        return self.status == 0

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """True when the object changed since it was read, or another already has the name."""
        return self.status == 409

    @property
    def expired(self) -> bool:
        return self.status == 410

    @property
    def retry_after(self) -> float:
        """The seconds that the server asked to wait, or 0."""
        seconds = self.details.get("retryAfterSeconds", 0)
        return float(seconds) if isinstance(seconds, int | float) else 0.0
