"""The access token of an execution's web server: the pod is told it, and the proxy adds it to each request.

Derived from the installation's secret key, so no process has to store or share it, and a retry makes the same Secret.
"""

import hashlib
import hmac

from django.conf import settings


def access_token(execution_id: str) -> str:
    """64 hexadecimal digits; knowing one execution's token tells nothing about another's."""
    key = settings.SECRET_KEY.encode()
    return hmac.new(key, f"compute-grid execution {execution_id}".encode(), hashlib.sha256).hexdigest()
