#!/bin/bash
# Runs a command against a real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager, of
# any version, without kubelets and without a scheduler. Everything lives in a temporary folder and ends with the command.
#
#   tests/contract/with_control_plane.sh FOLDER_WITH_THE_BINARIES [COMMAND...]      (default: python -m pytest tests/contract)
#
# The command finds the cluster in CONTRACT_KUBECONFIG and KUBECONFIG, and how to make it forget history in CONTRACT_COMPACT.
# Needs bash, curl, openssl and python3.
set -euo pipefail
bin=$(cd "${1:?folder that holds etcd, etcdctl, kube-apiserver and kube-controller-manager}" && pwd); shift
[ $# -gt 0 ] || set -- python -m pytest tests/contract
for program in etcd etcdctl kube-apiserver kube-controller-manager; do
  [ -x "$bin/$program" ] || { echo "$bin has no program $program" >&2; exit 2; }
done

state=$(mktemp -d)
pids=()
end() {
  # Last started, first ended; only our own processes, by their id.
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do kill "${pids[i]}" 2>/dev/null && wait "${pids[i]}" 2>/dev/null || true; done
  rm -rf "$state"
}
trap end EXIT
trap 'exit 130' INT TERM

start() { # name command...
  local name=$1; shift
  "$@" >"$state/$name.log" 2>&1 </dev/null &
  pids+=($!)
}
await() { # name command...: until the command succeeds
  local name=$1 tries=600; shift
  until "$@" >/dev/null 2>&1; do
    if ((--tries == 0)) || ! kill -0 "${pids[-1]}" 2>/dev/null; then
      echo "$name does not work:" >&2; tail -20 "$state/$name.log" >&2; exit 1
    fi
    sleep 0.1
  done
}

# Kubernetes 1.20 opens a plain port on every address and has no generic ephemeral volumes unless told so; later versions do not know
# these options.
plain=() gates=()
if "$bin/kube-controller-manager" --version | grep -q 'v1\.20'; then
  plain=(--port=0) gates=(--feature-gates=GenericEphemeralVolume=true)
fi

read -r etcd_port peer_port api_port manager_port < <(python3 - <<'PYTHON'
import socket
listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(listener.getsockname()[1] for listener in listeners))
PYTHON
)
token=$(openssl rand -hex 24)
echo "$token,admin,admin,system:masters" >"$state/tokens.csv"
openssl genrsa -out "$state/accounts.key" 2048 2>/dev/null
openssl rsa -in "$state/accounts.key" -pubout -out "$state/accounts.pub" 2>/dev/null

start etcd "$bin/etcd" --name cp --data-dir "$state/etcd" --log-level warn --unsafe-no-fsync \
  --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
  --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-cluster "cp=http://127.0.0.1:$peer_port"
await etcd curl -sf "http://127.0.0.1:$etcd_port/health"

start kube-apiserver "$bin/kube-apiserver" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
  --secure-port="$api_port" --endpoint-reconciler-type=none --cert-dir="$state/serving" \
  --etcd-servers="http://127.0.0.1:$etcd_port" --service-cluster-ip-range=10.96.0.0/16 \
  --authorization-mode=RBAC --token-auth-file="$state/tokens.csv" --disable-admission-plugins=RuntimeClass \
  --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$state/accounts.pub" \
  --service-account-signing-key-file="$state/accounts.key" "${gates[@]}"
await kube-apiserver curl -sfk -H "Authorization: Bearer $token" "https://127.0.0.1:$api_port/readyz"

cat >"$state/kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: control-plane
contexts: [{name: control-plane, context: {cluster: control-plane, user: admin}}]
clusters: [{name: control-plane, cluster: {server: "https://127.0.0.1:$api_port", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: "$token"}}]
YAML

start kube-controller-manager "$bin/kube-controller-manager" --bind-address=127.0.0.1 --secure-port="$manager_port" \
  --cert-dir="$state/manager" --kubeconfig="$state/kubeconfig" --leader-elect=false --kube-api-qps=200 --kube-api-burst=400 \
  --use-service-account-credentials=false --service-account-private-key-file="$state/accounts.key" "${plain[@]}" "${gates[@]}"
await kube-controller-manager curl -sfk "https://127.0.0.1:$manager_port/healthz"

export CONTRACT_KUBECONFIG="$state/kubeconfig" KUBECONFIG="$state/kubeconfig"
export CONTRACT_COMPACT="'$bin/etcdctl' --endpoints http://127.0.0.1:$etcd_port compact \$VERSION"
"$@"
