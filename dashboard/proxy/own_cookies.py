"""The cookies that the proxy itself gives: never told to a program, never taken from one (pure).

On https their names begin with `__Host-`, so that browsers take them from this very host only: a program on a sibling host name
cannot set one for the parent domain and so put its own in the place of a visitor's.
"""

from dataclasses import dataclass

from grid.origins import Origins

_SECRET, _OPENER = "grid_workspace", "grid_opener"
_HOST = "__Host-"


def is_ours(name: str) -> bool:
    """Whatever a browser makes of upper and lower case: the prefixes count in either."""
    lowered = name.strip().lower()
    return lowered.startswith(("grid_", f"{_HOST.lower()}grid_", "__secure-grid_"))


@dataclass(frozen=True, slots=True)
class OwnCookies:
    """Of one installation. Where all executions share an origin, each has its own names and path instead."""

    origins: Origins

    def secret(self, execution_id: str) -> str:
        return self._name(_SECRET, execution_id)

    def opener(self, execution_id: str) -> str:
        return self._name(_OPENER, execution_id)

    def header(self, execution_id: str, name: str, value: str, *, seconds: int) -> str:
        """A Set-Cookie header's value. Lax, not Strict: a browser that comes from the dashboard has to send it."""
        path = f"/w/{execution_id}/" if self.origins.by_path else "/"
        secure = "; Secure" if self.origins.is_secure else ""
        return f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"

    def _name(self, kind: str, execution_id: str) -> str:
        if self.origins.by_path:
            return f"{kind}_{execution_id}"
        return f"{_HOST}{kind}" if self.origins.is_secure else kind
