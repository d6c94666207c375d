"""Whole manifests of Kubernetes' own kinds: no field of a kube-apiserver is unknown, and misspelt ones are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.apis.manifests import CONTEXT, shown

from springtide.apis.core import KINDS
from springtide.apis.objects import LoadedObject, load
from springtide.apis.schema import ViewSchema, schema_of
from springtide.apiserver import builtin
from springtide.apiserver.kinds import StructureNode
from springtide.assembly.builtin_validation import judge

MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
          - {key: example.com/generation, operator: Gt, values: ["3"]}
          - {key: example.com/legacy, operator: DoesNotExist}
          matchFields:
          - {key: metadata.name, operator: NotIn, values: [n1]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 10
        preference: {matchExpressions: [{key: disk, operator: Exists}]}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: topology.kubernetes.io/zone
        labelSelector: {matchLabels: {app: cache}}
        namespaceSelector: {}
        matchLabelKeys: [app]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}
        namespaces: [shop]
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm: {topologyKey: zone, labelSelector: {}, mismatchLabelKeys: [tier]}
  topologySpreadConstraints:
  - maxSkew: 1
    minDomains: 3
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: web}}
    nodeAffinityPolicy: Honor
    nodeTaintsPolicy: Honor
  tolerations:
  - {key: dedicated, operator: Equal, value: web, effect: NoSchedule}
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  schedulingGates: [{name: example.com/wait}]
  preemptionPolicy: Never
  priorityClassName: high
  hostNetwork: true
  terminationGracePeriodSeconds: 60
  resources: {requests: {cpu: 500m}, limits: {cpu: "2", memory: 4Gi}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data-web-0, readOnly: false}}
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        metadata: {labels: {type: scratch}}
        spec:
          accessModes: [ReadWriteOnce]
          storageClassName: fast
          volumeMode: Filesystem
          resources: {requests: {storage: 1Gi}, limits: {storage: 2Gi}}
  - name: secrets-store
    csi:
      driver: secrets-store.csi.k8s.io
      readOnly: true
      fsType: ext4
      volumeAttributes: {secretProviderClass: app}
      nodePublishSecretRef: {name: credentials}
  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: log, hostPath: {path: /var/log, type: Directory}}
  - {name: conf, configMap: {name: c, optional: true, defaultMode: 420, items: [{key: a, path: b, mode: 256}]}}
  - {name: tls, secret: {secretName: s, optional: false, defaultMode: 256, items: [{key: a, path: b}]}}
  - name: token
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3607}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
  - {name: info, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: share, nfs: {server: nfs.example.com, path: /share, readOnly: true}}
  - {name: old, awsElasticBlockStore: {volumeID: vol-1, fsType: ext4}}
  - {name: model, image: {reference: "example.com/model:1", pullPolicy: IfNotPresent}}
  containers:
  - name: main
    image: web
    ports: [{containerPort: 80, hostPort: 80}]
    volumeMounts: [{name: data, mountPath: /data}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: db}]}
  volumeClaimTemplates:
  - apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 10Gi}}
      selector: {matchLabels: {tier: db}}
    status: {phase: Pending}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
spec:
  podCIDR: 10.0.0.0/24
  podCIDRs: [10.0.0.0/24]
  providerID: "aws:///a/i-1"
  taints: [{key: a, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]
status:
  addresses: [{type: InternalIP, address: 10.1.0.1}]
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions:
  - type: Ready
    status: "True"
    reason: KubeletReady
    message: kubelet is posting ready status
    lastHeartbeatTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
  daemonEndpoints: {kubeletEndpoint: {Port: 10250}}
  nodeInfo:
    architecture: amd64
    bootID: b
    containerRuntimeVersion: containerd://2.1.0
    kernelVersion: 6.12.0
    kubeProxyVersion: ""
    kubeletVersion: v1.36.0
    machineID: m
    operatingSystem: linux
    osImage: Linux
    swap: {capacity: 0}
    systemUUID: u
  images: [{names: [a], sizeBytes: 1}]
  volumesAttached: [{name: v, devicePath: ""}]
  volumesInUse: [v]
  runtimeHandlers: [{name: ""}]
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pvc-1
  labels: {topology.kubernetes.io/zone: a}
  annotations: {pv.kubernetes.io/provisioned-by: ebs.csi.aws.com}
  finalizers: [kubernetes.io/pv-protection]
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 10Gi}
  claimRef: {kind: PersistentVolumeClaim, namespace: shop, name: data-web-0, uid: u, resourceVersion: "1"}
  csi:
    driver: ebs.csi.aws.com
    volumeHandle: vol-1
    fsType: ext4
    readOnly: false
    volumeAttributes: {storage.kubernetes.io/csiProvisionerIdentity: x}
    controllerExpandSecretRef: {name: s, namespace: shop}
  mountOptions: [noatime]
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]
  persistentVolumeReclaimPolicy: Delete
  storageClassName: gp3
  volumeMode: Filesystem
status: {phase: Bound, lastPhaseTransitionTime: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: local-1}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 100Gi}
  local: {path: /mnt/disks/1, fsType: xfs}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: h, operator: In, values: [n1]}]}]}}
  storageClassName: local
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data-web-0
  namespace: shop
  annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: n1}
spec:
  accessModes: [ReadWriteOncePod]
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}
  resources: {requests: {storage: 10Gi}}
  storageClassName: gp3
  volumeMode: Filesystem
  volumeName: pvc-1
  volumeAttributesClassName: fast
status:
  accessModes: [ReadWriteOncePod]
  capacity: {storage: 10Gi}
  phase: Bound
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: gp3, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: ebs.csi.aws.com
parameters: {type: gp3}
reclaimPolicy: Delete
allowVolumeExpansion: true
mountOptions: [noatime]
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata:
  name: n1
  annotations: {storage.alpha.kubernetes.io/migrated-plugins: kubernetes.io/aws-ebs}
  ownerReferences: [{apiVersion: v1, kind: Node, name: n1, uid: u}]
spec:
  drivers:
  - name: ebs.csi.aws.com
    nodeID: i-1
    topologyKeys: [topology.kubernetes.io/zone]
    allocatable: {count: 25}
  - {name: efs.csi.aws.com, nodeID: i-1, topologyKeys: null}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000000
globalDefault: false
preemptionPolicy: Never
description: For what customers see.
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 50%
  selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [test]}]}
  unhealthyPodEvictionPolicy: AlwaysAllow
status:
  currentHealthy: 2
  desiredHealthy: 1
  disruptionsAllowed: 1
  expectedPods: 2
  observedGeneration: 1
  conditions:
  - type: DisruptionAllowed
    status: "True"
    reason: SufficientPods
    message: ""
    lastTransitionTime: "2026-01-01T00:00:00Z"
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: all}
spec: {maxUnavailable: 1, selector: {}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: defaults, namespace: shop}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 512Mi}
    defaultRequest: {cpu: 100m, memory: 128Mi}
    max: {cpu: "2"}
    min: {cpu: 50m}
    maxLimitRequestRatio: {cpu: "10"}
  - {type: Pod, max: {memory: 4Gi}}
  - {type: PersistentVolumeClaim, min: {storage: 1Gi}}
"""


def manifests(text: str) -> list[LoadedObject]:
    found = list(load(text, CONTEXT))
    assert all(isinstance(one, LoadedObject) for one in found)
    return [one for one in found if isinstance(one, LoadedObject)]


@pytest.mark.parametrize("item", [pytest.param(one, id=one.kind.kind) for one in manifests(MANIFESTS)])
def test_full_manifests_have_no_problems(item: LoadedObject) -> None:
    """Neither the views nor the rules of the API server find anything."""
    assert shown(judge(item).problems) == []
    assert item.view is not None


@pytest.mark.parametrize(
    ("written", "misspelt", "path"),
    [
        pytest.param("nodeAffinity:", "nodeAfinity:", "spec.affinity.nodeAfinity", id="affinity"),
        pytest.param(
            "nodeSelectorTerms:\n        - match",
            "nodeSelectorTerm:\n        - match",
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerm",
            id="node-selector-terms",
        ),
        pytest.param(
            "podAffinityTerm:",
            "podAffinityTerms:",
            "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerms",
            id="weighted-term",
        ),
        pytest.param(
            "readOnly: false}}", "readonly: false}}", "spec.volumes[0].persistentVolumeClaim.readonly", id="volume"
        ),
        pytest.param(
            "storageClassName: fast",
            "storageClass: fast",
            "spec.volumes[1].ephemeral.volumeClaimTemplate.spec.storageClass",
            id="ephemeral-claim",
        ),
        pytest.param("emptyDir:", "emptydir:", "spec.volumes[3].emptydir", id="source"),
        pytest.param(
            "schedulingGates: [{name:", "schedulingGates: [{names:", "spec.schedulingGates[0].names", id="gate"
        ),
    ],
)
def test_misspelt_fields_of_pods(written: str, misspelt: str, path: str) -> None:
    """A field that is misspelt deep in a pod is an error at its place."""
    text = MANIFESTS.partition("---")[0]
    assert written in text
    (pod,) = manifests(text.replace(written, misspelt, 1))

    assert f"error {path}" in shown(judge(pod).problems)


@pytest.mark.parametrize(
    ("kind", "written", "misspelt", "path"),
    [
        pytest.param("PersistentVolume", "nodeAffinity:", "nodeaffinity:", "spec.nodeaffinity", id="volume"),
        pytest.param("PersistentVolumeClaim", "accessModes:", "accessMode:", "spec.accessMode", id="claim"),
        pytest.param("StorageClass", "volumeBindingMode:", "volumeBindMode:", "volumeBindMode", id="storage-class"),
        pytest.param("CSINode", "allocatable:", "allocateable:", "spec.drivers[0].allocateable", id="csi-node"),
        pytest.param("PriorityClass", "globalDefault:", "globaldefault:", "globaldefault", id="priority-class"),
        pytest.param("PodDisruptionBudget", "minAvailable:", "minAvailible:", "spec.minAvailible", id="budget"),
        pytest.param(
            "LimitRange", "defaultRequest:", "defaultRequests:", "spec.limits[0].defaultRequests", id="limits"
        ),
    ],
)
def test_misspelt_fields_of_other_kinds(kind: str, written: str, misspelt: str, path: str) -> None:
    """So it is in the other kinds."""
    text = next(part for part in MANIFESTS.split("---\n") if f"\nkind: {kind}\n" in part)
    (item,) = manifests(text.replace(written, misspelt, 1))

    assert shown(judge(item).problems) == [f"error {path}"]


_OLDER = ("workloadRef",)
"""Fields of older versions of Kubernetes."""


def _differences(schema: ViewSchema, node: StructureNode, path: str) -> Iterator[str]:
    if schema.view is not None and path != ".status":
        yield from (f"{path}.{name} is not known" for name in node.fields if name not in schema.known)
        yield from (f"{path}.{name} does not exist" for name in schema.known if name not in {*node.fields, *_OLDER})
        for field in schema.fields:
            if field.name in node.fields:
                yield from _differences(field.schema, node.fields[field.name], f"{path}.{field.name}")
    elif schema.items is not None and node.items is not None:
        yield from _differences(schema.items, node.items, f"{path}[]")


_SERVED = {(kind.resource.api_version, kind.resource.kind): kind for kind in builtin.kinds()}


@pytest.mark.parametrize(
    ("kind", "api_version", "view"),
    [
        pytest.param(kind, kind.api_version(version), version.view, id=f"{kind.kind}-{version.name}")
        for kind in KINDS
        for version in kind.versions
        if kind.group != "keda.sh"
    ],
)
def test_fields_are_those_of_the_api_server(kind: Any, api_version: str, view: Any) -> None:
    """Views know each field of a kube-apiserver and no other, and the kinds have its names and scopes."""
    served = _SERVED[api_version, kind.kind]

    assert (kind.plural, kind.scope == "Namespaced") == (served.resource.plural, served.resource.namespaced)
    assert list(_differences(schema_of(view), served.structure, "")) == []
