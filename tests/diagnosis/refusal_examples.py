"""For `rule_examples`: of each rule about refusals of the API server, a message to which it applies, and one that is merely like it."""

_VALIDATING = (
    "deployments.apps \"a\" is forbidden: ValidatingAdmissionPolicy 'labels' with binding 'all' denied request:"
)

REFUSALS = {
    "refusals.WEBHOOK_TROUBLES": {
        "no-endpoints": (
            'no endpoints available for service "kyverno-svc"',
            'endpoints of service "kyverno-svc" are two',
        ),
        "no-service": ('service "kyverno-svc" not found', 'path of service "kyverno-svc" answers: found'),
        "no-tunnel": (
            "proxy error from 127.0.0.1:9345 while dialing 10.42.0.7:443, code 502: Bad Gateway",
            "Bad Gateway",
        ),
        "refused": (
            "dial tcp 10.96.0.9:443: connect: connection refused",
            "dial tcp 10.96.0.9:443: connect: no route to host",
        ),
        "certificate-early": (
            "x509: certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is before 2026-03-05T00:00:00Z",
            "the certificate is not yet valid for them",
        ),
        "certificate-expired": (
            "x509: certificate has expired or is not yet valid: current time 2026-03-04T09:00:00Z is after 2026-03-01T00:00:00Z",
            "the certificate has expired, they say",
        ),
        "certificate-name": (
            "x509: certificate is valid for hooks.old.svc, not hooks.shop.svc",
            "the certificate is valid for ever",
        ),
        "certificate": (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "the certificate of another team was asked for",
        ),
        "timed-out": (
            'Post "https://hooks.shop.svc:443/check?timeout=10s": context deadline exceeded',
            'Post "https://hooks.shop.svc:443/check?timeout=10s": EOF',
        ),
        "unreachable": (
            'Post "https://hooks.shop.svc:443/check?timeout=10s": EOF',
            'Post "https://hooks.shop.svc:443/EOFS": 404',
        ),
        "answer": (
            "received invalid webhook response: expected response.uid=1, got 2",
            "received a webhook response of unexpected length",
        ),
        "failing": ("the server is currently unable to handle the request", "the server is handling the request"),
    },
    "refusals.REFUSALS": {
        "quota": (
            'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10',
            'pods "a" is forbidden: status unknown for quota: team, resources: pods',
        ),
        "must-specify": (
            'pods "a" is forbidden: failed quota: team: must specify limits.memory for: run',
            'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10',
        ),
        "pod-security": (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            'Warning: would violate PodSecurity "restricted:latest": runAsNonRoot != true',
        ),
        "webhook": (
            'admission webhook "images.example.com" denied the request: only images of our registry',
            'failed calling webhook "images.example.com": connection refused',
        ),
        "webhook-down": (
            'Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: connection refused',
            'admission webhook "images.example.com" denied the request: failed calling the registry',
        ),
        "no-dry-run": (
            'admission webhook "images.example.com" does not support dry run',
            'admission webhook "images.example.com" denied the request: no dry run',
        ),
        "policy-broken": (
            f"{_VALIDATING} failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            f"{_VALIDATING} failed expression: object.spec.replicas <= 5",
        ),
        "policy": (
            f"{_VALIDATING} failed expression: object.spec.replicas <= 5",
            "Validation failed for ValidatingAdmissionPolicy 'labels' with binding 'all': failed expression: object.spec.replicas <= 5",
        ),
        "mutating-policy": (
            "policy 'sidecars' with binding 'all' denied request: invalid JSONPatch value type: string",
            f"{_VALIDATING} failed expression: object.spec.replicas <= 5",
        ),
        "image-rejected": ("one or more images rejected by webhook backend", "one or more images were accepted"),
        "image-policy": (
            'pods "a" is forbidden: image policy webhook backend denied one or more images: not signed',
            'admission webhook "images.example.com" denied the request: one or more images are not signed',
        ),
        "image-policy-down": (
            'pods "a" is forbidden: Post "https://images.example.com/policy": dial tcp 10.0.0.9:443: connect: connection refused',
            'failed calling webhook "images": failed to call webhook: Post "https://images.example.com/policy": connection refused',
        ),
        "always-pull": (
            'pods "a" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "IfNotPresent": supported values: "Always"',
            'Pod "a" is invalid: spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: "Always"',
        ),
        "quota-not-counted": (
            'pods "a" is forbidden: status unknown for quota: team, resources: pods',
            'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10',
        ),
        "quota-busy": (
            'Operation cannot be fulfilled on resourcequotas "team": the object has been modified; please apply your changes',
            'Operation cannot be fulfilled on pods "a": the object has been modified; please apply your changes',
        ),
        "no-quota": (
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]",
            'pods "a" is forbidden: failed quota: team: must specify limits.memory for: run',
        ),
        "limit-range": (
            'pods "a" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000',
            'pods "a" is forbidden: maximum number of pods is 10',
        ),
        "rights": (
            'pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group ""',
            'pods is forbidden: User "system:serviceaccount:a:b" exceeded its rate of requests',
        ),
        "context-constraint": (
            'pods "a" is forbidden: unable to validate against any security context constraint: [provider "anyuid": not usable]',
            'pods "a" is forbidden: the security context constraint restricted-v2 was chosen',
        ),
        "priority-class": (
            'pods "a" is forbidden: no PriorityClass with name batch was found',
            'pods "a" is forbidden: failed to get PriorityClass with name batch: timeout',
        ),
        "service-account": (
            'pods "a" is forbidden: error looking up service account shop/jobs: serviceaccount "jobs" not found',
            'pods "a" is forbidden: error looking up service account shop/jobs: context deadline exceeded',
        ),
        "claim-template": (
            'PodResourceClaim gpu: resource claim template "gpu-4": resourceclaimtemplate.resource.k8s.io "gpu-4" not found',
            'PodResourceClaim gpu: resource claim template "gpu-4": its claim is not owned by the pod',
        ),
        "runtime-class": (
            'pods "a" is forbidden: pod rejected: RuntimeClass "gvisor" not found',
            "pods \"a\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        "node-rule": (
            'pods "a" is forbidden: pod node label selector conflicts with its namespace node label selector',
            'pods "a" is forbidden: its node label selector is empty',
        ),
        "namespace-missing": ('namespaces "shop" not found', 'pods "shop" not found'),
        "owner-rights": (
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind Thing",
        ),
        "node-rights": (
            'pods "a" is forbidden: node "n1" can only create mirror pods',
            'nodes "n1" is forbidden: this node may not be deleted',
        ),
        "starting": (
            'pods "a" is forbidden: not yet ready to handle request',
            'pods "a" is forbidden: it is not ready',
        ),
        "too-large": (
            'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes',
            'Pod "a" is invalid: metadata.labels: Too long: may not be more than 63 bytes',
        ),
        "invalid": (
            'Pod "a" is invalid: spec.containers[0].image: Required value',
            'pods "a" is forbidden: spec.containers[0].image: it is invalid: ',
        ),
        "unreadable": (
            'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.x"',
            'the Pod in version "v1" was handled as a Pod',
        ),
        "database-full": (
            "etcdserver: mvcc: database space exceeded",
            "etcdserver: mvcc: required revision has been compacted",
        ),
        "database-busy": ("etcdserver: request timed out", "the etcd server timed out"),
        "unknown-kind": ("the server could not find the requested resource", "the server could not find pods a"),
        "throttled": ("Too many requests, please try again later.", "Many requests were answered."),
        "namespace-ends": (
            'configmaps "a" is forbidden: unable to create new content in namespace b because it is being terminated',
            'namespaces "b" is forbidden: this namespace may not be deleted',
        ),
    },
}
