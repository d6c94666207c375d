"""Writes to single objects, through the cluster port, so that any transport can be tested."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    DRY,
    NAMESPACES,
    NODES,
    PODS,
    WIDGETS,
    WRITE,
    config_map,
    definition,
    deployment,
    key,
    pod,
    run_story,
    widget,
)

from springtide.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedPatch,
)
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import Patch, PatchType, Precondition, Transport, Write


async def _made(cluster: Transport, resource: Resource, body: Object) -> Object:
    return await cluster.create(resource, body, WRITE, namespace="default" if resource.namespaced else "")


def test_a_new_object_gets_uid_version_and_time() -> None:
    async def story(cluster: Transport) -> None:
        made = await _made(cluster, DEPLOYMENTS, deployment())
        metadata = made["metadata"]
        assert metadata["namespace"] == "default"
        assert metadata["creationTimestamp"] == "2027-01-15T08:00:00Z"
        assert metadata["generation"] == 1
        assert len(metadata["uid"]) == 36
        assert int(metadata["resourceVersion"]) > 0
        assert made == await cluster.get(DEPLOYMENTS, key("web"))

    run_story(story)


def test_server_set_metadata_are_ignored_on_create() -> None:
    async def story(cluster: Transport) -> None:
        wanted = config_map(uid="matching", creationTimestamp="2001-01-01T00:00:00Z", generation=9, selfLink="/x")
        metadata = (await _made(cluster, CONFIG_MAPS, wanted))["metadata"]
        assert metadata["uid"] != "mine"
        assert metadata["creationTimestamp"] == "2027-01-15T08:00:00Z"
        assert "selfLink" not in metadata
        # The server does not count the generation of this kind, and accepts any.
        assert metadata["generation"] == 9

    run_story(story)


def test_duplicate_owners_are_removed() -> None:
    async def story(cluster: Transport) -> None:
        owner, other = ({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name} for name in ("o", "p"))
        made = await _made(cluster, CONFIG_MAPS, config_map(ownerReferences=[owner, other, dict(owner)]))
        assert made["metadata"]["ownerReferences"] == [owner, other]

    run_story(story)


def test_generated_names_are_unique() -> None:
    async def story(cluster: Transport) -> None:
        body = {"metadata": {"generateName": "job-"}}
        names = [(await _made(cluster, CONFIG_MAPS, body))["metadata"]["name"] for _ in range(3)]
        assert len(set(names)) == 3
        assert all(name.startswith("job-") and len(name) == 9 for name in names)

    run_story(story)


_REFUSED_BODIES = [
    pytest.param(
        CONFIG_MAPS, {"metadata": {}}, Invalid, "Required value: name or generateName is required", id="no name"
    ),
    pytest.param(CONFIG_MAPS, config_map("No_Good"), Invalid, "a lowercase RFC 1123 subdomain", id="bad name"),
    pytest.param(CONFIG_MAPS, config_map("a" * 254), Invalid, "must be no more than 253", id="name too long"),
    pytest.param(NAMESPACES, {"metadata": {"name": "A"}}, Invalid, "RFC 1123 label", id="bad namespace name"),
    pytest.param(NAMESPACES, {"metadata": {"name": "a.b"}}, Invalid, "must not contain dots", id="namespace with dots"),
    pytest.param(WIDGETS, {"metadata": {"name": "w"}}, NotFound, "could not find", id="kind that is not there"),
    pytest.param(CONFIG_MAPS, config_map(labels={"a b": "c"}), Invalid, "metadata.labels", id="bad label key"),
    pytest.param(CONFIG_MAPS, config_map(labels={"a": "-"}), Invalid, "a valid label must be", id="bad label value"),
    pytest.param(CONFIG_MAPS, config_map(labels={"a": 1}), BadRequest, "expected a string", id="label not a string"),
    pytest.param(CONFIG_MAPS, config_map(labels=["a"]), BadRequest, "metadata.labels", id="labels not a map"),
    pytest.param(CONFIG_MAPS, {"metadata": "x"}, BadRequest, "expected an object", id="metadata not an object"),
    pytest.param(CONFIG_MAPS, [], BadRequest, "expected an object", id="not an object"),
    pytest.param(CONFIG_MAPS, config_map(finalizers=["a b"]), Invalid, "metadata.finalizers", id="bad finalizer"),
    pytest.param(
        CONFIG_MAPS,
        config_map(finalizers=["orphan", "foregroundDeletion"]),
        Invalid,
        "cannot be both set",
        id="both propagation finalizers",
    ),
    pytest.param(
        CONFIG_MAPS, config_map(annotations={"a": "x" * 262_145}), Invalid, "Too long", id="annotations too large"
    ),
    pytest.param(
        CONFIG_MAPS, config_map(ownerReferences=[{"kind": "Pod"}]), Invalid, "version must not be empty", id="bad owner"
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(
            ownerReferences=[
                {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"
            ]
        ),
        Invalid,
        "Only one reference can have Controller set to true",
        id="two controllers",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(resourceVersion="1"),
        BadRequest,
        "should not be set on objects to be created",
        id="version",
    ),
    pytest.param(
        CONFIG_MAPS,
        config_map(namespace="kube-system"),
        BadRequest,
        "does not match the namespace",
        id="other namespace",
    ),
    pytest.param(
        CONFIG_MAPS,
        {"apiVersion": "v2", **config_map()},
        BadRequest,
        "does not match the expected API",
        id="other version",
    ),
    pytest.param(CONFIG_MAPS, {"kind": "Secret", **config_map()}, BadRequest, "expected kind", id="other kind"),
    pytest.param(
        Resource("", "v1", "gadgets", "Gadget"),
        config_map(),
        NotFound,
        "could not find the requested",
        id="no such kind",
    ),
    pytest.param(
        Resource("apps", "v9", "deployments", "Deployment"),
        deployment(),
        NotFound,
        "could not find",
        id="no such version",
    ),
]


@pytest.mark.parametrize(("resource", "body", "error", "text"), _REFUSED_BODIES)
def test_refuses_to_create(resource: Resource, body: Any, error: type[ApiError], text: str) -> None:
    async def story(cluster: Transport) -> None:
        for write in (DRY, WRITE):
            with pytest.raises(error, match=text) as caught:
                await cluster.create(resource, body, write, namespace="default" if resource.namespaced else "")
            assert type(caught.value) is error
        listed = await cluster.list(Selection(CONFIG_MAPS))
        assert [item["metadata"]["name"] for item in listed.items] == []

    run_story(story)


def test_names_are_unique() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEPLOYMENTS, deployment())
        with pytest.raises(AlreadyExists, match=r'^deployments\.apps "web" already exists$'):
            await _made(cluster, DEPLOYMENTS, deployment())

    run_story(story)


def test_namespaces_must_exist() -> None:
    async def story(cluster: Transport) -> None:
        with pytest.raises(NotFound, match=r'^namespaces "nowhere" not found$'):
            await cluster.create(CONFIG_MAPS, config_map(), WRITE, namespace="nowhere")
        with pytest.raises(BadRequest, match="an empty namespace may not be set during creation"):
            await cluster.create(CONFIG_MAPS, config_map(), WRITE)
        made = await cluster.create(CONFIG_MAPS, config_map(namespace="kube-system"), WRITE)
        assert made["metadata"]["namespace"] == "kube-system"

    run_story(story)


def test_cluster_scoped_objects_have_no_namespace() -> None:
    async def story(cluster: Transport) -> None:
        body = {"metadata": {"name": "n", "namespace": "default"}}
        made = await cluster.create(NODES, body, WRITE, namespace="default")
        assert "namespace" not in made["metadata"]
        label = Patch.merge({"metadata": {"namespace": "default", "labels": {"a": "b"}}})
        changed = await cluster.patch(NODES, Key("", "n"), label, WRITE)
        assert "namespace" not in changed["metadata"]

    run_story(story)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_system_namespaces_cannot_be_deleted(name: str) -> None:
    async def story(cluster: Transport) -> None:
        with pytest.raises(Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
            await cluster.delete(NAMESPACES, Key("", name), WRITE)

    run_story(story)


def test_missing_objects_are_not_found() -> None:
    calls: list[Callable[[Transport], Awaitable[Any]]] = [
        lambda cluster: cluster.get(DEPLOYMENTS, key("x")),
        lambda cluster: cluster.patch(DEPLOYMENTS, key("x"), Patch.merge({}), WRITE),
        lambda cluster: cluster.delete(DEPLOYMENTS, key("x"), WRITE),
        lambda cluster: cluster.get(DEPLOYMENTS, key("x"), subresource="scale"),
    ]

    async def story(cluster: Transport) -> None:
        for call in calls:
            with pytest.raises(NotFound, match=r'^deployments\.apps "x" not found$'):
                await call(cluster)
        with pytest.raises(NotFound, match="could not find the requested resource"):
            await cluster.get(CONFIG_MAPS, key("x"), subresource="scale")

    run_story(story)


_GENERATIONS = [
    pytest.param({"spec": {"replicas": 3}}, "", 2, id="spec"),
    pytest.param({"metadata": {"labels": {"a": "b"}}}, "", 1, id="metadata"),
    pytest.param({"status": {"replicas": 3}}, "status", 1, id="status"),
    pytest.param({"spec": {"replicas": 3}}, "scale", 2, id="scale"),
    pytest.param({"metadata": {"generation": 7}}, "", 1, id="generation"),
]


@pytest.mark.parametrize(("change", "subresource", "expected"), _GENERATIONS)
def test_generation_counts_changes_of_the_spec(change: Object, subresource: str, expected: int) -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEPLOYMENTS, deployment())
        await cluster.patch(DEPLOYMENTS, key("web"), Patch.merge(change), WRITE, subresource=subresource)
        assert (await cluster.get(DEPLOYMENTS, key("web")))["metadata"]["generation"] == expected

    run_story(story)


def test_generation_counts_the_status_without_a_subresource() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEFINITIONS, definition(status=False))
        await _made(cluster, WIDGETS, widget())
        changed = await cluster.patch(WIDGETS, key("w"), Patch.merge({"status": {"ready": 1}}), WRITE)
        assert changed["status"] == {"ready": 1}
        assert changed["metadata"]["generation"] == 2

    run_story(story)


_NO_CHANGES = [
    pytest.param({}, "", id="nothing"),
    pytest.param({"spec": {"replicas": 1}}, "", id="the same value"),
    pytest.param({"spec": {"paused": None}}, "", id="null for an absent field"),
    pytest.param({"metadata": {"labels": {}}}, "", id="empty labels"),
    pytest.param({"status": {"replicas": 9}}, "", id="status without the subresource"),
    pytest.param({"spec": {"replicas": 9}}, "status", id="spec through the status subresource"),
    pytest.param({"metadata": {"labels": {"a": "b"}}}, "status", id="labels through the status subresource"),
    pytest.param({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}, "", id="managed fields only"),
]


@pytest.mark.parametrize(("change", "subresource"), _NO_CHANGES)
def test_a_write_without_changes_has_no_effect(change: Object, subresource: str) -> None:
    async def story(cluster: Transport) -> None:
        made = await _made(cluster, DEPLOYMENTS, deployment())
        again = await cluster.patch(DEPLOYMENTS, key("web"), Patch.merge(change), WRITE, subresource=subresource)
        assert again == made
        assert (await cluster.list(Selection(DEPLOYMENTS))).version == made["metadata"]["resourceVersion"]

    run_story(story)


def test_true_and_1_differ() -> None:
    """A custom kind may have untyped fields: a change of type is a change."""
    anything = definition()
    schema = anything["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

    async def story(cluster: Transport) -> None:
        await _made(cluster, DEFINITIONS, anything)
        await _made(cluster, WIDGETS, widget(on=1))
        changed = await cluster.patch(WIDGETS, key("w"), Patch.merge({"spec": {"on": True}}), WRITE)
        assert changed["spec"]["on"] is True
        assert (await cluster.get(WIDGETS, key("w")))["spec"]["on"] is True

    run_story(story)


_CONFLICT = (
    'Operation cannot be fulfilled on deployments.apps "web": the object has been modified; '
    "please apply your changes to the latest version and try again"
)
_CONFLICTS = [
    pytest.param({"metadata": {"resourceVersion": "1"}}, Precondition(), _CONFLICT, id="version in the patch"),
    pytest.param({}, Precondition(version="1"), _CONFLICT, id="version as a precondition"),
    pytest.param({}, Precondition(uid="other"), "Precondition failed: UID in precondition: other", id="uid"),
]


@pytest.mark.parametrize(("change", "precondition", "text"), _CONFLICTS)
@pytest.mark.parametrize("subresource", ["", "status"])
def test_conflicts(change: Object, precondition: Precondition, text: str, subresource: str) -> None:
    async def story(cluster: Transport) -> None:
        made = await _made(cluster, DEPLOYMENTS, deployment())
        change_more = Patch.merge(change | {"spec": {"replicas": 4}, "status": {"replicas": 4}})
        with pytest.raises(Conflict) as caught:
            await cluster.patch(
                DEPLOYMENTS, key("web"), change_more, WRITE, subresource=subresource, precondition=precondition
            )
        assert text in caught.value.message
        assert await cluster.get(DEPLOYMENTS, key("web")) == made

    run_story(story)


def test_matching_preconditions_pass() -> None:
    async def story(cluster: Transport) -> None:
        metadata = (await _made(cluster, DEPLOYMENTS, deployment()))["metadata"]
        changed = await cluster.patch(
            DEPLOYMENTS,
            key("web"),
            Patch.merge({"spec": {"replicas": 4}}),
            WRITE,
            precondition=Precondition(metadata["resourceVersion"], metadata["uid"]),
        )
        assert changed["spec"]["replicas"] == 4
        assert int(changed["metadata"]["resourceVersion"]) > int(metadata["resourceVersion"])

    run_story(story)


_IMMUTABLE = [
    pytest.param({"name": "other"}, "the name of the object", id="name"),
    pytest.param({"namespace": "kube-system"}, "the namespace of the provided object does not match", id="namespace"),
]


@pytest.mark.parametrize(("metadata", "text"), _IMMUTABLE)
def test_identity_fields_are_immutable(metadata: Object, text: str) -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, CONFIG_MAPS, config_map())
        with pytest.raises(BadRequest, match=text):
            await cluster.patch(CONFIG_MAPS, key("a"), Patch.merge({"metadata": metadata}), WRITE)

    run_story(story)


def test_all_problems_are_reported() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEFINITIONS, definition())
        body = widget("W", size="big")
        body["metadata"]["labels"] = {"a": "?"}
        with pytest.raises(Invalid) as caught:
            await _made(cluster, WIDGETS, body)
        fields = [cause.field for cause in caught.value.causes]
        assert fields == ["metadata.name", "metadata.labels", "spec.size"]
        assert caught.value.message.startswith('Widget.example.com "W" is invalid: [metadata.name: Invalid value: "W"')

    run_story(story)


def test_dry_runs_have_no_effect() -> None:
    async def story(cluster: Transport) -> None:
        would = await cluster.create(DEPLOYMENTS, deployment(), DRY, namespace="default")
        assert would["spec"]["replicas"] == 1
        with pytest.raises(NotFound):
            await cluster.get(DEPLOYMENTS, key("web"))
        made = await _made(cluster, DEPLOYMENTS, deployment())
        would = await cluster.patch(DEPLOYMENTS, key("web"), Patch.merge({"spec": {"replicas": 4}}), DRY)
        assert would["spec"]["replicas"] == 4
        await cluster.delete(DEPLOYMENTS, key("web"), DRY)
        await cluster.patch(DEPLOYMENTS, key("web"), Patch.merge({"spec": {"replicas": 4}}), DRY, subresource="scale")
        assert await cluster.get(DEPLOYMENTS, key("web")) == made
        assert (await cluster.list(Selection(DEPLOYMENTS))).version == made["metadata"]["resourceVersion"]

    run_story(story)


def test_apply_creates_updates_and_removes_fields() -> None:
    def body(**data: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default"},
            "data": data,
        }

    async def story(cluster: Transport) -> None:
        made = await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body(x="1", y="2")), WRITE)
        assert made["data"] == {"x": "1", "y": "2"}
        again = await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body(x="1", y="2")), WRITE)
        assert again == made
        other = Write("other")
        with pytest.raises(Conflict, match='conflict with "tester"'):
            await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body(x="3")), other)
        forced = await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body(x="3"), force=True), other)
        assert forced["data"] == {"x": "3", "y": "2"}
        back = await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body()), WRITE)
        assert back["data"] == {"x": "3"}

    run_story(story)


def test_apply_of_status_owns_status_alone() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEFINITIONS, definition())
        body: Object = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        with pytest.raises(NotFound, match=r'widgets\.example\.com "w" not found'):
            await cluster.patch(WIDGETS, key("w"), Patch.apply(body), WRITE, subresource="status")
        await _made(cluster, WIDGETS, widget(size=1))
        mixed = body | {"spec": {"size": 9}, "status": {"ready": 2}}
        changed = await cluster.patch(WIDGETS, key("w"), Patch.apply(mixed), Write("controller"), subresource="status")
        assert (changed["spec"], changed["status"]) == ({"size": 1}, {"ready": 2})
        assert changed["metadata"]["generation"] == 1
        owned = {entry["manager"]: list(entry["fieldsV1"]) for entry in changed["metadata"]["managedFields"]}
        assert owned == {"tester": ["f:spec"], "controller": ["f:status"]}

    run_story(story)


@pytest.mark.parametrize(
    ("body", "write", "text"),
    [
        pytest.param([], WRITE, "expected an object", id="not an object"),
        pytest.param({"kind": "ConfigMap"}, WRITE, "apiVersion of an apply is None", id="no version"),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap"}, Write(""), "fieldManager is required", id="no field manager"
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": [{}]}},
            WRITE,
            "must be nil",
            id="owners",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
            WRITE,
            r"the name of the object \(b\) does not match the name on the URL \(a\)",
            id="another name",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
            WRITE,
            r"the name of the object \(a based on URL\) was undeterminable: name must be provided",
            id="no name",
        ),
    ],
)
def test_refuses_to_apply(body: Any, write: Write, text: str) -> None:
    async def story(cluster: Transport) -> None:
        with pytest.raises(BadRequest, match=text):
            await cluster.patch(CONFIG_MAPS, key("a"), Patch(PatchType.APPLY, body), write)

    run_story(story)


@pytest.mark.parametrize("precondition", [Precondition(version="3"), Precondition(uid="u")], ids=["version", "uid"])
def test_apply_with_a_precondition_creates_nothing(precondition: Precondition) -> None:
    """A late apply with a precondition must not recreate a deleted object."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    async def story(cluster: Transport) -> None:
        with pytest.raises(NotFound):
            await cluster.patch(CONFIG_MAPS, key("a"), Patch.apply(body), WRITE, precondition=precondition)

    run_story(story)


def test_custom_kinds_refuse_strategic_patches() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, DEFINITIONS, definition())
        await _made(cluster, WIDGETS, widget())
        with pytest.raises(UnsupportedPatch, match="application/merge-patch"):
            await cluster.patch(WIDGETS, key("w"), Patch(PatchType.STRATEGIC, {}), WRITE)

    run_story(story)


def test_json_and_strategic_patches() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, PODS, pod())
        strategic = Patch(PatchType.STRATEGIC, {"spec": {"containers": [{"name": "main", "image": "other"}]}})
        changed = await cluster.patch(PODS, key("p"), strategic, WRITE)
        assert changed["spec"]["containers"][0]["image"] == "other"
        json_patch = Patch.json({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
        assert (await cluster.patch(PODS, key("p"), json_patch, WRITE))["metadata"]["labels"] == {"a": "b"}

    run_story(story)


def test_only_nodes_are_created_with_a_status() -> None:
    async def story(cluster: Transport) -> None:
        status = {"capacity": {"cpu": "4"}}
        node = await _made(cluster, NODES, {"metadata": {"name": "n"}, "status": status})
        assert node["status"]["capacity"] == {"cpu": "4"}
        made = await _made(cluster, PODS, pod() | {"status": {"phase": "Running"}})
        assert made["status"]["phase"] == "Pending"

    run_story(story)


def test_request_bodies_are_copied() -> None:
    """Changing the body of a request later does not change the stored object."""

    async def story(cluster: Transport) -> None:
        body = config_map(labels={"a": "b"})
        await _made(cluster, CONFIG_MAPS, body)
        body["data"]["k"] = body["metadata"]["labels"]["a"] = "changed"
        patch = {"metadata": {"annotations": {"x": "y"}}}
        await cluster.patch(CONFIG_MAPS, key("a"), Patch.merge(patch), WRITE)
        patch["metadata"]["annotations"]["x"] = "changed"
        stored = await cluster.get(CONFIG_MAPS, key("a"))
        assert (stored["data"], stored["metadata"]["labels"]) == ({"k": "v"}, {"a": "b"})
        assert stored["metadata"]["annotations"] == {"x": "y"}

    run_story(story)


def test_unsupported_verbs_are_refused() -> None:
    async def story(cluster: Transport) -> None:
        await _made(cluster, PODS, pod())
        with pytest.raises(MethodNotAllowed):
            await cluster.get(PODS, key("p"), subresource="eviction")

    run_story(story)
