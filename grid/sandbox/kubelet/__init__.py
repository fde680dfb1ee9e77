"""The kubelets of this machine: nodes that run pods as real processes, for the embedded cluster or any other API server.

    fleet = Fleet(client, data_dir=data, images=ImageStore(images))    # the cluster's `Cloud`
    await fleet.start()
    ...
    await fleet.stop()                                                 # ends every container

`run_kubelets` does the same for any other API server. docs/embedded-cluster-kubelet.md tells how these kubelets differ
from real ones.
"""

from grid.sandbox.kubelet.capacity import allocatable_of
from grid.sandbox.kubelet.fleet import Fleet, FleetSettings, run_kubelets
from grid.sandbox.kubelet.kubelet import Kubelet

__all__ = ["Fleet", "FleetSettings", "Kubelet", "allocatable_of", "run_kubelets"]
