"""The embedded cluster's API server. See `server` for HTTP, `registry` for the verbs, `kinds` for what is served."""

from grid.sandbox.apiserver.identity import Tokens
from grid.sandbox.apiserver.server import ApiServer

__all__ = ["ApiServer", "Tokens"]
