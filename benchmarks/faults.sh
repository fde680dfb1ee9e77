#!/bin/bash
# Runs `python -m benchmarks.faults` on a real control plane of its own, which ends with it: etcd, kube-apiserver,
# kube-controller-manager and kube-scheduler.
#
#   benchmarks/faults.sh FOLDER_OF_SCRIPTS FOLDER_OF_BINARIES [launches | FAULT ...]      (default: all)
#
# The scripts are start.sh and stop.sh of `.ci/run`'s control plane. A snapshot is saved with etcdctl while all runs. To restore it,
# all four programs are ended, and started again with the store that was made from it.
set -euo pipefail
scripts=$(readlink -f "${1:?folder that holds start.sh and stop.sh}") K8S_BIN=$(readlink -f "${2:?folder that holds etcd, etcdctl and kube-apiserver}")
shift 2
cd "$(dirname "$(readlink -f "$0")")/.."
export K8S_BIN CP PORT_BASE=${PORT_BASE:-14000} FAULT_SCRIPTS=$scripts
CP=$(mktemp -d)
trap '"$scripts/stop.sh" --wipe; rm -rf "$CP"' EXIT
trap 'exit 143' INT TERM
"$scripts/start.sh"

export REAL_KUBECONFIG=$CP/admin.kubeconfig
export REAL_API_DOWN='kill -9 $(cat "$CP/run/kube-apiserver.pid")' REAL_API_UP='"$FAULT_SCRIPTS/start.sh"'
export SNAPSHOT_SAVE='rm -f "$CP/snapshot"; ETCDCTL_API=3 "$K8S_BIN/etcdctl" --endpoints "http://127.0.0.1:$((PORT_BASE + 379))" snapshot save "$CP/snapshot"'
export SNAPSHOT_RESTORE='"$FAULT_SCRIPTS/stop.sh" && rm -rf "$CP/data/etcd" && ETCDCTL_API=3 "$K8S_BIN/etcdctl" snapshot restore "$CP/snapshot" \
  --name cp --data-dir "$CP/data/etcd" --initial-advertise-peer-urls "http://127.0.0.1:$((PORT_BASE + 380))" \
  --initial-cluster "cp=http://127.0.0.1:$((PORT_BASE + 380))" && "$FAULT_SCRIPTS/start.sh"'
.venv/bin/python -m benchmarks.faults "$@"
