"""How a server judges workloads and their pod templates: what users get wrong in strategies, selectors, restart
policies, containers, ports, probes, volumes and resources.

`check` is judged by the same answers.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.case import each
from tests.conformance.samples import container, deployment, job, pod, template
from tests.conformance.session import Object, Session

_LABELS = {"app": "web"}


def _rolling(**rolling: Any) -> Object:
    return deployment(strategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def _template(**spec: Any) -> Object:
    return deployment(template=template(**spec))


def _main(**fields: Any) -> Object:
    return _template(containers=[container(**fields)])


def _ports(*ports: Object) -> Object:
    return _main(ports=list(ports))


def _resources(**resources: Any) -> Object:
    return _main(resources=resources)


def _probe(**probe: Any) -> Object:
    return _main(livenessProbe=probe)


def _mounted(volumes: list[Object], *mounts: Object) -> Object:
    main = container() | ({"volumeMounts": list(mounts)} if mounts else {})
    return _template(volumes=volumes, containers=[main])


def _labelled(**labels: str) -> Object:
    return deployment(template={**template(), "metadata": {"labels": labels}})


def _set(kind: str, **spec: Any) -> Object:
    whole = {"selector": {"matchLabels": _LABELS}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": whole}


def _stateful(**spec: Any) -> Object:
    return _set("StatefulSet", **{"serviceName": "web", **spec})


def _daemon(**rolling: Any) -> Object:
    return _set("DaemonSet", updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling})


def _job_template(**spec: Any) -> Object:
    return job(template={"spec": {**job()["spec"]["template"]["spec"], **spec}})


def _without(item: Object, field: str) -> Object:
    return {**item, "spec": {name: value for name, value in item["spec"].items() if name != field}}


def _pod_template(**spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}, "template": template(**spec)}


_SCRATCH = {"name": "scratch", "emptyDir": {}}
_MOUNT = {"name": "scratch", "mountPath": "/scratch"}
_HTTP = {"httpGet": {"path": "/healthz", "port": 8080}}

DEPLOYMENTS: dict[str, Object] = {
    "valid": deployment(replicas=2),
    "no replicas at all": deployment(replicas=0),
    "negative replicas": deployment(replicas=-1),
    "replicas as a text": deployment(replicas="3"),
    "negative ready seconds": deployment(minReadySeconds=-1),
    "negative history": deployment(revisionHistoryLimit=-1),
    "deadline before ready": deployment(minReadySeconds=600, progressDeadlineSeconds=600),
    "negative deadline": deployment(progressDeadlineSeconds=-1),
    "recreate": deployment(strategy={"type": "Recreate"}),
    "recreate with a rolling update": deployment(strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
    "unknown strategy": deployment(strategy={"type": "BlueGreen"}),
    "strategy as a text": deployment(strategy="Recreate"),
    "neither surge nor unavailable": _rolling(maxSurge=0, maxUnavailable=0),
    "neither surge nor unavailable in percent": _rolling(maxSurge="0%", maxUnavailable="0%"),
    "only unavailable": _rolling(maxSurge=0, maxUnavailable=1),
    "negative surge": _rolling(maxSurge=-1),
    "negative unavailable": _rolling(maxUnavailable=-1),
    "surge of 150 percent": _rolling(maxSurge="150%"),
    "unavailable of 150 percent": _rolling(maxUnavailable="150%"),
    "surge as a text": _rolling(maxSurge="25"),
    "unknown field of the strategy": deployment(strategy={"type": "Recreate", "maxSurge": 1}),
    "no selector": _without(deployment(), "selector"),
    "empty selector": deployment(selector={}),
    "selector of another label": deployment(selector={"matchLabels": {"app": "other"}}),
    "template without labels": deployment(template={"spec": template()["spec"]}),
    "selector by expression": deployment(
        selector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
    ),
    "selector of an unknown operator": deployment(
        selector={"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}
    ),
    "selector without values": deployment(selector={"matchExpressions": [{"key": "app", "operator": "In"}]}),
    "selector of values that must exist": deployment(
        selector={"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["web"]}]}
    ),
    "selector of an invalid key": deployment(selector={"matchLabels": {**_LABELS, "a b": "c"}}),
    "selector of an invalid value": deployment(selector={"matchLabels": {"app": "a b"}}),
    "labels of the template with a blank": _labelled(app="web", team="a b"),
    "no template": _without(deployment(), "template"),
    "template without a spec": deployment(template={"metadata": {"labels": _LABELS}}),
    "pods that never restart": _template(restartPolicy="Never"),
    "pods that restart on failure": _template(restartPolicy="OnFailure"),
    "unknown restart policy": _template(restartPolicy="Sometimes"),
    "pods with a deadline": _template(activeDeadlineSeconds=60),
    "unknown field": deployment(replica=3),
}

CONTAINERS: dict[str, Object] = {
    "no containers": _template(containers=[]),
    "containers not set": deployment(template={"metadata": {"labels": _LABELS}, "spec": {}}),
    "no name": _template(containers=[{"image": "example.com/app"}]),
    "no image": _template(containers=[{"name": "main"}]),
    "name in capitals": _template(containers=[container("Main")]),
    "name with an underscore": _template(containers=[container("my_app")]),
    "one name twice": _template(containers=[container(), container()]),
    "init container of the same name": _template(initContainers=[container()]),
    "init container that restarts": _template(initContainers=[container("first", restartPolicy="Always")]),
    "unknown pull policy": _main(imagePullPolicy="Sometimes"),
    "pull policy in lower case": _main(imagePullPolicy="always"),
    "variable of a value and a source": _main(
        env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    ),
    "variable without a name": _main(env=[{"value": "b"}]),
    "variable as a number": _main(env=[{"name": "A", "value": 1}]),
    "variable of an empty source": _main(env=[{"name": "A", "valueFrom": {}}]),
    "variable of two sources": _main(
        env=[
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.name"},
                    "secretKeyRef": {"name": "secret", "key": "a"},
                },
            }
        ]
    ),
    "command as a text": _main(command="run"),
    "misspelt field": _main(comand=["run"]),
}

PORTS: dict[str, Object] = {
    "valid": _ports({"containerPort": 8080, "name": "http"}),
    "number of zero": _ports({"containerPort": 0}),
    "negative number": _ports({"containerPort": -1}),
    "number beyond the range": _ports({"containerPort": 65536}),
    "number as a text": _ports({"containerPort": "8080"}),
    "no number": _ports({"name": "http"}),
    "name in capitals": _ports({"containerPort": 8080, "name": "HTTP"}),
    "name with an underscore": _ports({"containerPort": 8080, "name": "my_port"}),
    "name of digits": _ports({"containerPort": 8080, "name": "8080"}),
    "name of 16 characters": _ports({"containerPort": 8080, "name": "a-very-long-name"}),
    "one name twice": _ports({"containerPort": 80, "name": "http"}, {"containerPort": 81, "name": "http"}),
    "unknown protocol": _ports({"containerPort": 8080, "protocol": "HTTP"}),
    "protocol in lower case": _ports({"containerPort": 8080, "protocol": "tcp"}),
    "host port beyond the range": _ports({"containerPort": 8080, "hostPort": 70000}),
    "one host port twice": _ports({"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}),
}

RESOURCES: dict[str, Object] = {
    "valid": _resources(requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": 1, "memory": "1Gi"}),
    "request above its limit": _resources(requests={"cpu": 2}, limits={"cpu": 1}),
    "negative request": _resources(requests={"cpu": "-1"}),
    "negative limit": _resources(limits={"memory": "-1Gi"}),
    "not a quantity": _resources(requests={"memory": "64MB"}),
    "unknown name": _resources(requests={"mem": "64Mi"}),
    "fraction of a device": _resources(limits={"example.com/gpu": "500m"}),
    "device without a limit": _resources(requests={"example.com/gpu": 1}),
    "device requested less than its limit": _resources(requests={"example.com/gpu": 1}, limits={"example.com/gpu": 2}),
    "huge pages alone": _resources(limits={"hugepages-2Mi": "4Mi"}),
    "unknown field": _resources(limit={"cpu": 1}),
}

PROBES: dict[str, Object] = {
    "valid": _probe(**_HTTP),
    "no handler": _probe(periodSeconds=5),
    "two handlers": _probe(**_HTTP, tcpSocket={"port": 8080}),
    "negative delay": _probe(**_HTTP, initialDelaySeconds=-1),
    "negative period": _probe(**_HTTP, periodSeconds=-1),
    "negative timeout": _probe(**_HTTP, timeoutSeconds=-1),
    "several successes of a liveness probe": _probe(**_HTTP, successThreshold=2),
    "several successes of a readiness probe": _main(readinessProbe={**_HTTP, "successThreshold": 2}),
    "port beyond the range": _probe(httpGet={"port": 70000}),
    "port of an invalid name": _probe(httpGet={"port": "My Port"}),
    "no port": _probe(httpGet={"path": "/healthz"}),
    "unknown scheme": _probe(httpGet={"port": 80, "scheme": "FTP"}),
    "no command": _probe(exec={"command": []}),
    "negative failures": _probe(**_HTTP, failureThreshold=-1),
    "grace period of a readiness probe": _main(readinessProbe={**_HTTP, "terminationGracePeriodSeconds": 5}),
    "several successes of a startup probe": _main(startupProbe={**_HTTP, "successThreshold": 2}),
    "port of a socket": _probe(tcpSocket={"port": 0}),
    "port of gRPC": _probe(grpc={"port": 70000}),
    "grace period of zero": _probe(**_HTTP, terminationGracePeriodSeconds=0),
    "handler as a text": _probe(httpGet="/healthz"),
}

VOLUMES: dict[str, Object] = {
    "valid": _mounted([_SCRATCH], _MOUNT),
    "mount of an unknown volume": _mounted([], _MOUNT),
    "mount without a path": _mounted([_SCRATCH], {"name": "scratch"}),
    "two mounts at one path": _mounted([_SCRATCH], _MOUNT, _MOUNT),
    "mount of a parent path": _mounted([_SCRATCH], {**_MOUNT, "subPath": "../x"}),
    "one name twice": _mounted([_SCRATCH, _SCRATCH], _MOUNT),
    "name in capitals": _mounted([{"name": "Scratch", "emptyDir": {}}]),
    "no name": _mounted([{"emptyDir": {}}]),
    "no source": _mounted([{"name": "scratch"}]),
    "two sources": _mounted([{**_SCRATCH, "configMap": {"name": "settings"}}], _MOUNT),
    "secret by the name of config maps": _mounted([{"name": "scratch", "secret": {"name": "settings"}}], _MOUNT),
    "secret without a name": _mounted([{"name": "scratch", "secret": {}}], _MOUNT),
    "config map without a name": _mounted([{"name": "scratch", "configMap": {}}], _MOUNT),
    "claim without a name": _mounted([{"name": "scratch", "persistentVolumeClaim": {}}], _MOUNT),
    "mode beyond the range": _mounted(
        [{"name": "scratch", "configMap": {"name": "settings", "defaultMode": 0o10000}}], _MOUNT
    ),
    "path on the host that goes up": _mounted([{"name": "scratch", "hostPath": {"path": "/var/../etc"}}], _MOUNT),
}

PODS: dict[str, Object] = {
    "unknown DNS policy": _template(dnsPolicy="Custom"),
    "DNS policy None without servers": _template(dnsPolicy="None"),
    "service account in capitals": _template(serviceAccountName="Robot"),
    "hostname with a dot": _template(hostname="web.shop"),
    "node selector of an invalid key": _template(nodeSelector={"a b": "c"}),
    "node selector as a number": _template(nodeSelector={"zone": 1}),
    "toleration without a key": _template(tolerations=[{"operator": "Equal", "value": "x"}]),
    "toleration that exists with a value": _template(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    "toleration of an unknown operator": _template(tolerations=[{"key": "a", "operator": "Like"}]),
    "toleration of an unknown effect": _template(tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
    "toleration with seconds for another effect": _template(
        tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]
    ),
    "skew of zero": _template(
        topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    ),
    "spread without a key": _template(
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "DoNotSchedule"}]
    ),
    "spread of an unknown action": _template(
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Maybe"}]
    ),
    "affinity of an unknown operator": _template(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Like", "values": ["a"]}]}]
                }
            }
        }
    ),
    "affinity without a topology key": _template(
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": _LABELS}}]
            }
        }
    ),
    "affinity of weight zero": _template(
        affinity={
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 0, "podAffinityTerm": {"topologyKey": "zone"}}
                ]
            }
        }
    ),
    "root that must not be root": _template(securityContext={"runAsNonRoot": True, "runAsUser": -1}),
    "host network with another host port": _template(
        hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]
    ),
    "misspelt field": _template(serviceAcountName="robot"),
}

OTHERS: dict[str, Object] = {
    "replica set that never restarts": _set("ReplicaSet", template=template(restartPolicy="Never")),
    "replica set of another label": _set("ReplicaSet", selector={"matchLabels": {"app": "other"}}),
    "replica set of negative replicas": _set("ReplicaSet", replicas=-1),
    "stateful set": _stateful(),
    "stateful set that never restarts": _stateful(template=template(restartPolicy="Never")),
    "stateful set of another label": _stateful(selector={"matchLabels": {"app": "other"}}),
    "stateful set of an unknown strategy": _stateful(updateStrategy={"type": "Recreate"}),
    "stateful set deleted by hand with a partition": _stateful(
        updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}
    ),
    "stateful set of a negative partition": _stateful(
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": -1}}
    ),
    "stateful set of an unknown pod management": _stateful(podManagementPolicy="Serial"),
    "stateful set of a service in capitals": _stateful(serviceName="Web"),
    "stateful set of negative replicas": _stateful(replicas=-1),
    "stateful set of negative ordinals": _stateful(ordinals={"start": -1}),
    "daemon set": _set("DaemonSet"),
    "daemon set of surge and unavailable": _daemon(maxSurge=1, maxUnavailable=1),
    "daemon set of neither": _daemon(maxSurge=0, maxUnavailable=0),
    "daemon set of an unknown strategy": _set("DaemonSet", updateStrategy={"type": "Recreate"}),
    "daemon set of another label": _set("DaemonSet", selector={"matchLabels": {"app": "other"}}),
    "daemon set that restarts on failure": _set("DaemonSet", template=template(restartPolicy="OnFailure")),
    "daemon set with replicas": _set("DaemonSet", replicas=2),
    "job": job(),
    "job that always restarts": _job_template(restartPolicy="Always"),
    "job without a restart policy": _job_template(restartPolicy=None),
    "job of negative parallelism": job(parallelism=-1),
    "job of negative completions": job(completions=-1),
    "job of negative retries": job(backoffLimit=-1),
    "job of a negative time to live": job(ttlSecondsAfterFinished=-1),
    "job of a negative deadline": job(activeDeadlineSeconds=-1),
    "indexed job without completions": job(completionMode="Indexed"),
    "job of an unknown mode": job(completionMode="Sorted"),
    "job of retries for each index": job(backoffLimitPerIndex=1),
    "job of a selector of its own": job(selector={"matchLabels": _LABELS}),
    "pod": pod(),
    "pod without an image": pod(containers=[{"name": "main"}]),
    "pod of an unknown restart policy": pod(restartPolicy="Sometimes"),
    "pod template": _pod_template(),
    "pod template without an image": _pod_template(containers=[{"name": "main"}]),
    "pod template without a spec": {**_pod_template(), "template": {}},
    "pod of a port beyond the range": pod(containers=[container(ports=[{"containerPort": 70000}])]),
}

_RESOURCES = {
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
    "Job": "jobs",
    "Pod": "pods",
    "PodTemplate": "podtemplates",
}

WORKLOADS: dict[str, Object] = {
    f"{about}: {name}": item
    for about, table in (
        ("deployment", DEPLOYMENTS),
        ("container", CONTAINERS),
        ("port", PORTS),
        ("resources", RESOURCES),
        ("probe", PROBES),
        ("volume", VOLUMES),
        ("pod", PODS),
        ("other", OTHERS),
    )
    for name, item in table.items()
}


@each(WORKLOADS)
def judged(session: Session, item: Object) -> None:
    path = f"{item['apiVersion']}/{_RESOURCES[item['kind']]}"
    session.create(path, item, dryRun="All", fieldValidation="Strict")
