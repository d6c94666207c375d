"""Typical pods of a large cluster, of about 4 KB each."""

from __future__ import annotations

from springtide.cluster.resources import Object

NODES = 5_000
APPS = 400


def pod(n: int) -> Object:
    """Make the n-th pod, as its controller would write it."""
    app = f"app-{n % APPS}"
    environment = [{"name": f"SETTING_{i}", "value": f"value-{i}-of-{app}"} for i in range(12)]
    container = {
        "name": "main",
        "image": f"registry.example.com/team-{n % 50}/{app}:v{n % 7}",
        "env": environment,
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{n % APPS:010x}-{n:06x}",
            "namespace": "default",
            "labels": {"app": app, "team": f"team-{n % 50}", "pod-template-hash": f"{n % APPS:010x}"},
            "annotations": {"example.com/checksum": f"{n * 2654435761 % 2**64:064x}"},
        },
        "spec": {
            "nodeName": f"node-{n % NODES}",
            "containers": [container],
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": app, "effect": "NoSchedule"}],
        },
    }
