"""Admission with webhooks: which are called, in which order, and the effect of their responses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    DRY,
    LIMIT_RANGES,
    PODS,
    START,
    WIDGETS,
    WRITE,
    config_map,
    definition,
    deployment,
    key,
    make_server,
    pod,
    widget,
)
from tests.apiserver.webhooks.webhook_server import (
    DENIED,
    EVERYTHING,
    MUTATING,
    USER,
    VALIDATING,
    WebhookCluster,
    error_of,
    label_response,
    patch,
    run_story,
    webhook,
)

from springtide.cluster.errors import ApiError, Conflict, Forbidden, Invalid
from springtide.cluster.resources import Object, Selection
from springtide.cluster.transport import Patch, Write


def test_a_new_object_is_mutated_then_validated() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(
            MUTATING, webhook(cluster.hooks.on("/change", label_response("changed") | {"warnings": ["w"]}))
        )
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {"warnings": ["v", "w"]})))

        done = await cluster.execute(
            lambda: cluster.server.create(
                PODS, pod() | {"metadata": {"generateName": "p-"}}, WRITE, namespace="default"
            )
        )

        assert done.warnings == ("w", "v")
        created = done.value
        assert created["metadata"]["labels"] == {"changed": "yes"}
        assert created == cluster.server.get(PODS, key(created["metadata"]["name"]))
        (first,), (second,) = cluster.hooks.requests("/change"), cluster.hooks.requests("/agree")
        # A mutating webhook sees the object before the server sets name, uid and time.
        assert {"generateName", "namespace", "managedFields"} == first["object"]["metadata"].keys()
        assert "name" not in first
        assert second["name"] == created["metadata"]["name"]
        assert second["object"]["metadata"].items() <= created["metadata"].items()
        assert second["object"]["spec"] == created["spec"]
        # Fields that a webhook adds have no owner.
        assert "f:labels" not in str(created["metadata"]["managedFields"])

    run_story(story)


def test_refusals_include_warnings() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(
            MUTATING, webhook(cluster.hooks.on("/change", label_response("changed") | {"warnings": ["w"]}))
        )
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/refuse", {"allowed": False, "warnings": ["v"]})))

        with pytest.raises(ApiError) as refused:
            await cluster.execute(lambda: cluster.server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default"))

        assert refused.value.warnings == ("w", "v")

    run_story(story)


def test_the_request_is_described() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/hook", {})))

        await cluster.create(CONFIG_MAPS, config_map("a"), DRY)

        (asked,) = cluster.hooks.requests("/hook")
        assert asked.pop("uid")
        assert asked.pop("object")["data"] == {"k": "v"}
        maps = {"group": "", "version": "v1", "resource": "configmaps"}
        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert asked == {
            "kind": kind,
            "resource": maps,
            "requestKind": kind,
            "requestResource": maps,
            "name": "a",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "alice", "groups": ["testers", "system:authenticated"], "uid": "u-1"},
            "oldObject": None,
            "dryRun": True,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "tester",
                "dryRun": ["All"],
            },
        }
        assert cluster.server.find((CONFIG_MAPS.group, CONFIG_MAPS.plural), key("a")) is None  # type: ignore[arg-type]

    run_story(story)


@pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=["mutating", "validating"])
@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply", "delete", "deletecollection"])
def test_a_refusal_has_no_effect(resource: Any, verb: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        old = server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        server.create(CONFIG_MAPS, config_map("b"), WRITE, namespace="default")
        cluster.register(resource, webhook(cluster.hooks.on("/no", DENIED)))
        before = server.revision
        new = {**old, "data": {"k": "w"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"z": "z"}}
        verbs = {
            "create": lambda: server.create(CONFIG_MAPS, config_map("c"), WRITE, namespace="default"),
            "update": lambda: server.update(CONFIG_MAPS, key("a"), new, WRITE),
            "patch": lambda: server.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "w"}}), WRITE),
            "apply": lambda: server.patch(CONFIG_MAPS, key("a"), Patch.apply(body), WRITE),
            "delete": lambda: server.delete(CONFIG_MAPS, key("a"), WRITE),
            "deletecollection": lambda: server.deletecollection(Selection(CONFIG_MAPS, "default"), WRITE),
        }

        error = await error_of(cluster, Forbidden, verbs[verb])

        assert error.message == 'admission webhook "hook.example.com" denied the request: no'
        assert server.revision == before

    run_story(story)


def test_an_update_is_reviewed_with_the_old_object() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(DEPLOYMENTS, deployment(), WRITE, namespace="default")
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", label_response("changed"))))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))
        change = Patch.merge({"spec": {"replicas": 4}})

        new = (await cluster.execute(lambda: server.patch(DEPLOYMENTS, key("web"), change, WRITE))).value

        assert (
            new["spec"]["replicas"],
            new["metadata"]["labels"],
            new["metadata"]["generation"],
        ) == (4, {"changed": "yes"}, 2)
        (first,), (second,) = cluster.hooks.requests("/change"), cluster.hooks.requests("/agree")
        assert tuple(
            item["metadata"]["generation"] for item in (first["oldObject"], first["object"], second["object"])
        ) == (1, 1, 2)
        assert (first["oldObject"]["spec"]["replicas"], first["object"]["spec"]["replicas"]) == (1, 4)
        assert first["options"] == {
            "kind": "UpdateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "tester",
        }

    run_story(story)


def test_a_write_without_changes_is_reviewed() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))
        before = server.revision

        await cluster.execute(lambda: server.patch(CONFIG_MAPS, key("a"), Patch.merge({}), WRITE))

        assert len(cluster.hooks.requests("/agree")) == 1
        assert server.revision == before

    run_story(story)


def test_a_webhook_may_add_required_fields() -> None:
    async def story(cluster: WebhookCluster) -> None:
        crd = definition()
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["color"]
        cluster.server.create(DEFINITIONS, crd, WRITE)
        await error_of(cluster, Invalid, lambda: cluster.server.create(WIDGETS, widget(), WRITE, namespace="default"))
        colour = {"op": "add", "path": "/spec/color", "value": "red"}
        unknown = {"op": "add", "path": "/spec/unknown", "value": 1}
        cluster.register(MUTATING, webhook(cluster.hooks.on("/fill", patch(colour, unknown))))

        new = await cluster.create(WIDGETS, widget())

        assert new["spec"] == {"size": 3, "color": "red"}

    run_story(story)


def test_validation_runs_after_mutating_webhooks() -> None:
    async def story(cluster: WebhookCluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/spoil", label_response("bad key!"))))

        error = await error_of(
            cluster, Invalid, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert error.message.startswith('ConfigMap "a" is invalid: metadata.labels: Invalid value: "bad key!"')

    run_story(story)


def test_plugins_complete_what_webhooks_add() -> None:
    async def story(cluster: WebhookCluster) -> None:
        limits = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}
        cluster.server.create(
            LIMIT_RANGES, {"metadata": {"name": "l"}, "spec": {"limits": [limits]}}, WRITE, namespace="default"
        )
        sidecar = {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "s"}}

        async def injecting(request: Object) -> Object:
            return {} if len(request["object"]["spec"]["containers"]) > 1 else patch(sidecar)

        cluster.register(MUTATING, webhook(cluster.hooks.on("/inject", injecting), reinvocationPolicy="IfNeeded"))

        new = await cluster.create(PODS, pod())

        assert [each["resources"]["requests"] for each in new["spec"]["containers"]] == [{"cpu": "1"}, {"cpu": "1"}]
        # It is reinvoked after changes, and a plugin has changed its container.
        first, second = cluster.hooks.requests("/inject")
        assert len(first["object"]["spec"]["containers"]) == 1
        assert second["object"]["spec"] == new["spec"]

    run_story(story)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("Never", "Never", ["/a", "/b"], id="no reinvocation"),
        pytest.param("IfNeeded", "Never", ["/a", "/b", "/a"], id="changed after it"),
        pytest.param("Never", "IfNeeded", ["/a", "/b"], id="not changed after it"),
        pytest.param("IfNeeded", "IfNeeded", ["/a", "/b", "/a"], id="only with the policy"),
    ],
)
def test_reinvocation_policy(first: str, second: str, expected: list[str]) -> None:
    async def story(cluster: WebhookCluster) -> None:
        annotate = {"op": "add", "path": "/metadata/annotations", "value": {"b": "b"}}
        cluster.register(
            MUTATING,
            webhook(cluster.hooks.on("/a", label_response("a")), name="a.example.com", reinvocationPolicy=first),
            webhook(cluster.hooks.on("/b", patch(annotate)), name="b.example.com", reinvocationPolicy=second),
        )

        new = await cluster.create(CONFIG_MAPS, config_map("x"))

        assert expected == [path for path, _ in cluster.hooks.asked]
        assert (new["metadata"]["labels"], new["metadata"]["annotations"]) == ({"a": "yes"}, {"b": "b"})
        assert "b" in str(cluster.hooks.asked[-1][1]["object"]["metadata"]) or expected[-1] == "/b"

    run_story(story)


def test_configurations_are_called_in_the_order_of_their_names() -> None:
    async def story(cluster: WebhookCluster) -> None:
        for name in ("zz", "aa", "mm"):
            cluster.register(MUTATING, webhook(cluster.hooks.on(f"/{name}", {})), name=name)

        await cluster.create(CONFIG_MAPS, config_map("x"))

        assert [path for path, _ in cluster.hooks.asked] == ["/aa", "/mm", "/zz"]

    run_story(story)


def test_the_first_of_several_refusals_is_returned() -> None:
    async def story(cluster: WebhookCluster) -> None:
        for name in ("b", "a"):
            said = {"allowed": False, "status": {"message": name}}
            cluster.register(
                VALIDATING, webhook(cluster.hooks.on(f"/{name}", said), name=f"{name}.example.com"), name=name
            )

        error = await error_of(
            cluster, ApiError, lambda: cluster.server.create(CONFIG_MAPS, config_map("x"), WRITE, namespace="default")
        )

        assert error.message == 'admission webhook "a.example.com" denied the request: a'

    run_story(story)


@pytest.mark.parametrize(
    ("expression", "policy", "asked"),
    [
        pytest.param("object.metadata.name == 'a'", "Fail", 1, id="holds"),
        pytest.param("object.metadata.name == 'b'", "Fail", 0, id="does not hold"),
        pytest.param("object.spec.x == 1", "Ignore", 0, id="fails, and failures are ignored"),
        pytest.param("oldObject == null && !has(object.spec)", "Fail", 1, id="old object"),
        pytest.param(
            "request.operation == 'CREATE' && request.userInfo.username == 'alice' && request.subResource == ''",
            "Fail",
            1,
            id="request attributes",
        ),
    ],
)
def test_match_conditions(expression: str, policy: str, asked: int) -> None:
    async def story(cluster: WebhookCluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}), failurePolicy=policy)
        hook["matchConditions"] = [{"name": "c", "expression": expression}]
        cluster.register(VALIDATING, hook)

        await cluster.create(CONFIG_MAPS, config_map("a"))

        assert asked == len(cluster.hooks.asked)

    run_story(story)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        pytest.param(
            ["object.spec.x == 1"],
            "expression 'object.spec.x == 1' resulted in error: no such key: spec",
            id="one",
        ),
        pytest.param(
            ["object.x == 1", "true", "object.y == 1"],
            "[expression 'object.x == 1' resulted in error: no such key: x, "
            "expression 'object.y == 1' resulted in error: no such key: y]",
            id="several",
        ),
    ],
)
def test_a_failing_match_condition_refuses_the_request(expressions: list[str], expected: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}))
        hook["matchConditions"] = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
        cluster.register(VALIDATING, hook)

        error = await error_of(
            cluster, Forbidden, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert error.message == f'configmaps "a" is forbidden: {expected}'
        assert cluster.hooks.asked == []

    run_story(story)


def test_a_dry_run_needs_a_webhook_without_side_effects() -> None:
    async def story(cluster: WebhookCluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}))
        stored = cluster.server.create(VALIDATING, {"metadata": {"name": "old"}, "webhooks": [hook]}, WRITE)
        # Configurations stored earlier may have values that are no longer accepted.
        stored["webhooks"][0]["sideEffects"] = "Some"

        error = await error_of(
            cluster, ApiError, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), DRY, namespace="default")
        )

        assert (error.code, error.message) == (400, 'admission webhook "hook.example.com" does not support dry run')

    run_story(story)


def test_requests_without_matching_webhooks_complete_at_once() -> None:
    async def story(cluster: WebhookCluster) -> None:
        hook = webhook({"url": "https://127.0.0.1:1/"}, rules=[EVERYTHING | {"resources": ["secrets"]}])
        cluster.register(VALIDATING, hook)
        performed = cluster.reviews.execute(
            lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default"), USER
        )

        # The call completes without yielding to the event loop.
        with pytest.raises(StopIteration) as done:
            performed.send(None)

        assert done.value.value.value["metadata"]["name"] == "a"

    run_story(story)


def test_constant_changes_end_in_a_conflict() -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        count = 0

        async def disturbing(_: Object) -> Object:
            nonlocal count
            count += 1
            server.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"n": str(count)}}), Write("other"))
            return {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/disturb", disturbing)))
        change = Patch.merge({"data": {"k": "w"}})

        error = await error_of(cluster, Conflict, lambda: server.patch(CONFIG_MAPS, key("a"), change, WRITE))

        assert "the object has been modified; please apply your changes" in error.message
        assert server.get(CONFIG_MAPS, key("a"))["data"]["k"] == "v"

    run_story(story)


@pytest.mark.parametrize("verb", ["patch", "delete"])
def test_webhooks_are_called_again_when_the_object_changes(verb: str) -> None:
    async def story(cluster: WebhookCluster) -> None:
        server = cluster.server
        server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")

        async def once(request: Object) -> Object:
            if request["oldObject"]["data"]["k"] == "guarded":
                return DENIED
            server.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"k": "guarded"}}), Write("other"))
            return {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/once", once)))
        verbs = {
            "patch": lambda: server.patch(CONFIG_MAPS, key("a"), Patch.merge({"data": {"l": "m"}}), WRITE),
            "delete": lambda: server.delete(CONFIG_MAPS, key("a"), WRITE),
        }

        await error_of(cluster, Forbidden, verbs[verb])

        assert server.get(CONFIG_MAPS, key("a"))["data"] == {"k": "guarded"}
        assert [request["oldObject"]["data"]["k"] for request in cluster.hooks.requests("/once")] == ["v", "guarded"]

    run_story(story)


def test_all_attempts_share_time_and_generated_values() -> None:
    """The cluster's clock may be fast: both attempts must review the same object."""
    ticks = iter(range(START, START + 10**6, 3600))

    async def story(cluster: WebhookCluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", label_response("a"))))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))

        created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "m-"}})

        assert len(cluster.hooks.asked) == 2
        (agreed,) = cluster.hooks.requests("/agree")
        given = {"name", "uid", "creationTimestamp", "managedFields"}
        assert {name: created["metadata"][name] for name in given} == {
            name: agreed["object"]["metadata"][name] for name in given
        }
        assert created["metadata"]["creationTimestamp"] == created["metadata"]["managedFields"][0]["time"]

    run_story(story, make_server(now=lambda: next(ticks)))


def test_a_generated_name_taken_in_the_meantime_is_drawn_again() -> None:
    async def story(cluster: WebhookCluster) -> None:
        async def taking(request: Object) -> Object:
            if len(cluster.hooks.asked) == 1:
                cluster.server.create(CONFIG_MAPS, config_map(request["name"]), WRITE, namespace="default")
            return {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/take", taking)))

        created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "m-"}})

        first, second = cluster.hooks.requests("/take")
        assert first["name"] != second["name"] == created["metadata"]["name"]
        assert second["object"]["metadata"]["uid"] == created["metadata"]["uid"]

    run_story(story)


@pytest.mark.parametrize(
    ("owners", "kept"),
    [
        pytest.param([{}], True, id="no entries"),
        pytest.param([{"manager": "x", "operation": "Dance"}], True, id="no such operation"),
        pytest.param([7], True, id="nonsense"),
        pytest.param([], False, id="none"),
    ],
)
def test_invalid_managed_fields_are_ignored(owners: list[Any], kept: bool) -> None:
    async def story(cluster: WebhookCluster) -> None:
        spoil = patch({"op": "add", "path": "/metadata/managedFields", "value": owners})
        cluster.register(MUTATING, webhook(cluster.hooks.on("/spoil", spoil)))

        new = await cluster.create(CONFIG_MAPS, config_map("a"))

        assert kept is ("managedFields" in new["metadata"])
        change = Patch.merge({"data": {"k": "w"}})
        await cluster.execute(lambda: cluster.server.patch(CONFIG_MAPS, key("a"), change, Write("other")))
        assert cluster.server.get(CONFIG_MAPS, key("a"))["data"] == {"k": "w"}

    run_story(story)
