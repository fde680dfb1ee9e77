"""The proxy's own cookies, which are never sent to a program and never accepted from one (pure).

On https their names begin with `__Host-`, so that browsers accept them from this host only: a program on a sibling host name cannot
replace a visitor's cookie with one for the parent domain.
"""

from dataclasses import dataclass

from grid.core.origins import Origins

_SECRET, _OPENER = "grid_workspace", "grid_opener"
_HOST = "__Host-"


def is_ours(name: str) -> bool:
    """Return whether a cookie's name is one of the proxy's, in upper or lower case, because browsers compare the prefixes so."""
    lowered = name.strip().lower()
    return lowered.startswith(("grid_", f"{_HOST.lower()}grid_", "__secure-grid_"))


@dataclass(frozen=True, slots=True)
class OwnCookies:
    """The cookies of one installation. Where all executions share an origin, each execution has its own cookie names and path."""

    origins: Origins

    def secret(self, execution_id: str) -> str:
        return self._name(_SECRET, execution_id)

    def opener(self, execution_id: str) -> str:
        return self._name(_OPENER, execution_id)

    def header(self, execution_id: str, name: str, value: str, *, seconds: int) -> str:
        """Return a Set-Cookie header's value. It is Lax, not Strict, because the browser must send it when it comes from the dashboard."""
        path = f"/w/{execution_id}/" if self.origins.by_path else "/"
        secure = "; Secure" if self.origins.is_secure else ""
        return f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"

    def _name(self, kind: str, execution_id: str) -> str:
        if self.origins.by_path:
            return f"{kind}_{execution_id}"
        return f"{_HOST}{kind}" if self.origins.is_secure else kind
