"""The embedded cluster: an API server, controllers and kubelets on this machine, for when there is no Kubernetes.

It is a program of its own that the rest reaches over HTTP only, as it reaches any cluster. It imports `grid.core`, and in its `client`
`grid.kube`; only the command that starts it imports it.
"""

PUBLIC = (
    "cluster", "controllers.autoscaler", "controllers.scaling.model", "data_files", "kubelet", "needs", "pools",
    "population", "prometheus",
)  # fmt: skip
