"""What leads to an execution's web server: its origin, the access token, which the pod is given and the proxy adds to each request, and the
key of its front.

Token and key are derived from the installation's secret key, so no process has to store or share them, and a retry makes the same Secret.
"""

import hashlib
import hmac

from django.conf import settings

from grid.core.origins import Origins


def access_token(execution_id: str) -> str:
    """Return 64 hexadecimal digits; one execution's token tells nothing about another's."""
    return _derived(f"compute-grid execution {execution_id}")


def front_key(execution_id: str) -> str:
    """Return the key of the tokens that the execution's front checks: 64 hexadecimal digits, which its program does not know."""
    return _derived(f"compute-grid front {execution_id}")


def _derived(purpose: str) -> str:
    return hmac.new(settings.SECRET_KEY.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def workspace_origins() -> Origins:
    return Origins(settings.WORKSPACE_ORIGIN.rstrip("/"), by_path=settings.WORKSPACE_PATHS)
