"""Discovery: groups, versions and resources, and who the user is."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import STRING, define, definition, properties
from tests.conformance.session import Object, Session

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_CORE = (
    *("bindings", "configmaps", "endpoints", "events", "limitranges", "namespaces", "nodes", "persistentvolumeclaims"),
    *("persistentvolumes", "pods", "podtemplates", "replicationcontrollers", "resourcequotas", "secrets"),
    *("serviceaccounts", "services"),
)


def _resources(answer: Any, *names: str) -> Any:
    """Keep the resources with these names, without their storage version."""
    if not isinstance(answer, dict) or "resources" not in answer:
        return answer
    kept = [
        {key: value for key, value in each.items() if key != "storageVersionHash"}
        for each in answer["resources"]
        if each["name"] in names
    ]
    return {**answer, "resources": sorted(kept, key=lambda each: str(each["name"]))}


@case
def core_versions(session: Session) -> None:
    answer = session.get("/api")
    session.steps[-1]["body"] = {key: answer.get(key) for key in ("kind", "versions")}


@each({each: each for each in _CORE})
def core_resource(session: Session, name: str) -> None:
    answer = session.get("/api/v1")
    session.steps[-1]["body"] = _resources(answer, name)


@each(
    {
        "pods": ("v1", ("pods/status", "pods/eviction", "pods/binding")),
        "namespaces": ("v1", ("namespaces/status", "namespaces/finalize")),
        "nodes": ("v1", ("nodes/status",)),
    }
)
def core_subresources(session: Session, what: tuple[str, tuple[str, ...]]) -> None:
    version, names = what
    answer = session.get(f"/api/{version}")
    session.steps[-1]["body"] = _resources(answer, *names)


_GROUPS: dict[str, tuple[str, ...]] = {
    "apps/v1": ("deployments", "deployments/scale", "deployments/status", "replicasets", "statefulsets", "daemonsets"),
    "batch/v1": ("jobs", "jobs/status", "cronjobs"),
    "policy/v1": ("poddisruptionbudgets", "poddisruptionbudgets/status"),
    "autoscaling/v2": ("horizontalpodautoscalers",),
    "coordination.k8s.io/v1": ("leases",),
    "scheduling.k8s.io/v1": ("priorityclasses",),
    "storage.k8s.io/v1": ("storageclasses",),
    "events.k8s.io/v1": ("events",),
    "apiextensions.k8s.io/v1": ("customresourcedefinitions", "customresourcedefinitions/status"),
    "admissionregistration.k8s.io/v1": ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
    "authentication.k8s.io/v1": ("selfsubjectreviews", "tokenreviews"),
    "authorization.k8s.io/v1": ("selfsubjectaccessreviews", "subjectaccessreviews"),
}


@each({each: each for each in _GROUPS})
def resources_of(session: Session, version: str) -> None:
    answer = session.get(f"/apis/{version}")
    session.steps[-1]["body"] = _resources(answer, *_GROUPS[version])


@each({each: each for each in ("apps", "batch", "policy", "autoscaling", "coordination.k8s.io")})
def versions_of(session: Session, group: str) -> None:
    answer = session.get(f"/apis/{group}")
    session.steps[-1]["body"] = {key: answer.get(key) for key in ("apiVersion", "kind", "name", "preferredVersion")}


@each({"group": "/apis/example.com", "version": "/apis/apps/v9", "core": "/api/v2", "place": "/nowhere"})
def of_a_missing_group(session: Session, path: str) -> None:
    session.get(path)


@case
def aggregated(session: Session) -> None:
    for path in ("/api", "/apis"):
        answer = session.get(path, accept=_AGGREGATED)
        groups = {each["metadata"].get("name", ""): each for each in answer["items"]}
        group = groups["apps" if path == "/apis" else ""]
        first = group["versions"][0]
        kept = [each for each in first["resources"] if each["resource"] in ("deployments", "pods")]
        for resource in kept:
            resource["subresources"] = [
                each for each in resource["subresources"] if each["subresource"] in ("scale", "status", "eviction")
            ]
        session.steps[-1]["body"] = {"kind": answer["kind"], "version": first["version"], "resources": kept}


def _discovered(session: Session, group: str) -> Object:
    def there(answer: Any) -> bool:
        return any(each["metadata"].get("name") == group for each in answer.body["items"])

    found = session.until(there, "/apis", headers={"Accept": _AGGREGATED})
    return dict(next(each for each in found["items"] if each["metadata"].get("name") == group))


@case
def aggregated_with_a_custom_kind(session: Session) -> None:
    scale = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
    schema = properties(spec=properties(a={"type": "integer"}), status=properties(a={"type": "integer"}))
    define(session, schema, subresources={"status": {}, "scale": scale})
    session.steps.append({"request": "GET /apis", "body": _discovered(session, session.group)})


@case
def preferred_version_of_a_custom_kind(session: Session) -> None:
    body = definition(session, {})
    schema = {"schema": {"openAPIV3Schema": properties(spec=properties(a=STRING))}, "served": True}
    names = ("v1beta1", "v10", "v2", "v1alpha2", "v1", "foo")
    body["spec"]["versions"] = [{"name": name, "storage": name == "v1", **schema} for name in names]
    session.prepare("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    path = f"/apis/{session.group}"
    session.until(lambda answer: answer.status == 200, path)
    session.get(path)
    found = _discovered(session, session.group)
    session.steps.append(
        {"request": "GET /apis", "body": {"versions": [each["version"] for each in found["versions"]]}}
    )


@case
def self_subject_review(session: Session) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    session.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    user = session.steps[-1]["body"]["status"]["userInfo"]
    # The other fields depend on how the server authenticates.
    user.pop("extra", None)


@case
def self_subject_access_review(session: Session) -> None:
    attributes = {"verb": "delete", "resource": "pods", "namespace": session.namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = session.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    answer["status"].pop("reason", None)


@case
def server_version(session: Session) -> None:
    answer = session.get("/version")
    session.steps[-1]["body"] = {"major": answer["major"], "minor": answer["minor"]}


@each({each: each for each in ("/healthz", "/livez", "/readyz")})
def health(session: Session, path: str) -> None:
    session.get(path)
