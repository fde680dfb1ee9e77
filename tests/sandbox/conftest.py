"""What the tests of the sandbox's programs share with those of its API server."""

from tests.sandbox.apiserver.conftest import api
from tests.sandbox.apiserver.test_kubelets import kubelet

__all__ = ["api", "kubelet"]
