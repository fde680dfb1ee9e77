"""The access token of an execution's web server, which the pod is given and the proxy adds to each request.

Derived from the installation's secret key, so no process has to store or share it, and a retry makes the same Secret.
"""

import hashlib
import hmac

from django.conf import settings


def access_token(execution_id: str) -> str:
    """Return 64 hexadecimal digits; one execution's token tells nothing about another's."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"compute-grid execution {execution_id}".encode(), hashlib.sha256).hexdigest()
