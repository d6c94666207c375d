"""What a server says that it serves: groups, versions, resources, and who asks."""

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
    """Keep the resources of these names, and of each what does not depend on how it is stored."""
    if not isinstance(answer, dict) or "resources" not in answer:
        return answer
    kept = [
        {key: value for key, value in each.items() if key != "storageVersionHash"}
        for each in answer["resources"]
        if each["name"] in names
    ]
    return {**answer, "resources": sorted(kept, key=lambda each: str(each["name"]))}


@case
def the_versions_of_the_core(play: Session) -> None:
    answer = play.get("/api")
    play.steps[-1]["body"] = {key: answer.get(key) for key in ("kind", "versions")}


@each({each: each for each in _CORE})
def a_resource_of_the_core(play: Session, name: str) -> None:
    answer = play.get("/api/v1")
    play.steps[-1]["body"] = _resources(answer, name)


@each(
    {
        "pods": ("v1", ("pods/status", "pods/eviction", "pods/binding")),
        "namespaces": ("v1", ("namespaces/status", "namespaces/finalize")),
        "nodes": ("v1", ("nodes/status",)),
    }
)
def the_subresources_of_the_core(play: Session, what: tuple[str, tuple[str, ...]]) -> None:
    version, names = what
    answer = play.get(f"/api/{version}")
    play.steps[-1]["body"] = _resources(answer, *names)


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
def the_resources_of(play: Session, version: str) -> None:
    answer = play.get(f"/apis/{version}")
    play.steps[-1]["body"] = _resources(answer, *_GROUPS[version])


@each({each: each for each in ("apps", "batch", "policy", "autoscaling", "coordination.k8s.io")})
def the_versions_of(play: Session, group: str) -> None:
    answer = play.get(f"/apis/{group}")
    play.steps[-1]["body"] = {key: answer.get(key) for key in ("apiVersion", "kind", "name", "preferredVersion")}


@each({"group": "/apis/example.com", "version": "/apis/apps/v9", "core": "/api/v2", "place": "/nowhere"})
def of_what_does_not_exist(play: Session, path: str) -> None:
    play.get(path)


@case
def in_one_document(play: Session) -> None:
    for path in ("/api", "/apis"):
        answer = play.get(path, accept=_AGGREGATED)
        groups = {each["metadata"].get("name", ""): each for each in answer["items"]}
        group = groups["apps" if path == "/apis" else ""]
        first = group["versions"][0]
        kept = [each for each in first["resources"] if each["resource"] in ("deployments", "pods")]
        for resource in kept:
            resource["subresources"] = [
                each for each in resource["subresources"] if each["subresource"] in ("scale", "status", "eviction")
            ]
        play.steps[-1]["body"] = {"kind": answer["kind"], "version": first["version"], "resources": kept}


def _discovered(play: Session, group: str) -> Object:
    def there(answer: Any) -> bool:
        return any(each["metadata"].get("name") == group for each in answer.body["items"])

    found = play.until(there, "/apis", headers={"Accept": _AGGREGATED})
    return dict(next(each for each in found["items"] if each["metadata"].get("name") == group))


@case
def a_custom_kind_in_one_document(play: Session) -> None:
    scale = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
    schema = properties(spec=properties(a={"type": "integer"}), status=properties(a={"type": "integer"}))
    define(play, schema, subresources={"status": {}, "scale": scale})
    play.steps.append({"request": "GET /apis", "body": _discovered(play, play.group)})


@case
def the_newest_stable_version_of_a_custom_kind_is_preferred(play: Session) -> None:
    body = definition(play, {})
    schema = {"schema": {"openAPIV3Schema": properties(spec=properties(a=STRING))}, "served": True}
    names = ("v1beta1", "v10", "v2", "v1alpha2", "v1", "foo")
    body["spec"]["versions"] = [{"name": name, "storage": name == "v1", **schema} for name in names]
    play.prepare("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    path = f"/apis/{play.group}"
    play.until(lambda answer: answer.status == 200, path)
    play.get(path)
    found = _discovered(play, play.group)
    play.steps.append({"request": "GET /apis", "body": {"versions": [each["version"] for each in found["versions"]]}})


@case
def who_asks(play: Session) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    play.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    user = play.steps[-1]["body"]["status"]["userInfo"]
    # How a user came to be known is a matter of how the server is set up.
    user.pop("extra", None)


@case
def what_the_admin_may(play: Session) -> None:
    attributes = {"verb": "delete", "resource": "pods", "namespace": play.namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = play.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    answer["status"].pop("reason", None)


@case
def the_version_of_the_server(play: Session) -> None:
    answer = play.get("/version")
    play.steps[-1]["body"] = {"major": answer["major"], "minor": answer["minor"]}


@each({each: each for each in ("/healthz", "/livez", "/readyz")})
def health(play: Session, path: str) -> None:
    play.get(path)
