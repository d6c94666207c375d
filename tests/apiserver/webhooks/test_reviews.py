"""Requests under review: who is asked, in which order, and what becomes of the answers."""

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
    a_server,
    config_map,
    definition,
    deployment,
    key,
    pod,
    widget,
)
from tests.apiserver.webhooks.webhook_server import (
    DENIED,
    EVERYTHING,
    MUTATING,
    USER,
    VALIDATING,
    Cluster,
    labelling,
    patch,
    refusal,
    told,
    webhook,
)

from springtide.cluster.errors import ApiError, Conflict, Forbidden, Invalid
from springtide.cluster.resources import Object, Selection
from springtide.cluster.transport import Patch, Write


def test_a_new_object_is_changed_then_agreed_to() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", labelling("changed") | {"warnings": ["w"]})))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {"warnings": ["v", "w"]})))

        done = await cluster.ask(
            lambda: cluster.server.create(
                PODS, pod() | {"metadata": {"generateName": "p-"}}, WRITE, namespace="default"
            )
        )

        assert done.warnings == ("w", "v")
        created = done.value
        assert created["metadata"]["labels"] == {"changed": "yes"}
        assert created == cluster.server.get(PODS, key(created["metadata"]["name"]))
        (first,), (second,) = cluster.hooks.requests("/change"), cluster.hooks.requests("/agree")
        # Whoever may change an object sees it before the server has named and dated it.
        assert {"generateName", "namespace", "managedFields"} == first["object"]["metadata"].keys()
        assert "name" not in first
        assert second["name"] == created["metadata"]["name"]
        assert second["object"]["metadata"].items() <= created["metadata"].items()
        assert second["object"]["spec"] == created["spec"]
        # What a webhook adds is nobody's.
        assert "f:labels" not in str(created["metadata"]["managedFields"])

    told(story)


def test_who_is_refused_is_warned_all_the_same() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", labelling("changed") | {"warnings": ["w"]})))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/refuse", {"allowed": False, "warnings": ["v"]})))

        with pytest.raises(ApiError) as refused:
            await cluster.ask(lambda: cluster.server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default"))

        assert refused.value.warnings == ("w", "v")

    told(story)


def test_the_request_is_described() -> None:
    async def story(cluster: Cluster) -> None:
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

    told(story)


@pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=["changing", "agreeing"])
@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply", "delete", "deletecollection"])
def test_a_refusal_keeps_everything_as_it_was(resource: Any, verb: str) -> None:
    async def story(cluster: Cluster) -> None:
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

        error = await refusal(cluster, Forbidden, verbs[verb])

        assert error.message == 'admission webhook "hook.example.com" denied the request: no'
        assert server.revision == before

    told(story)


def test_a_change_is_reviewed_with_what_was() -> None:
    async def story(cluster: Cluster) -> None:
        server = cluster.server
        server.create(DEPLOYMENTS, deployment(), WRITE, namespace="default")
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", labelling("changed"))))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))
        change = Patch.merge({"spec": {"replicas": 4}})

        new = (await cluster.ask(lambda: server.patch(DEPLOYMENTS, key("web"), change, WRITE))).value

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

    told(story)


def test_a_write_that_changes_nothing_is_reviewed_all_the_same() -> None:
    async def story(cluster: Cluster) -> None:
        server = cluster.server
        server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))
        before = server.revision

        await cluster.ask(lambda: server.patch(CONFIG_MAPS, key("a"), Patch.merge({}), WRITE))

        assert len(cluster.hooks.requests("/agree")) == 1
        assert server.revision == before

    told(story)


def test_a_webhook_may_fill_in_what_the_rules_ask_for() -> None:
    async def story(cluster: Cluster) -> None:
        crd = definition()
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = ["color"]
        cluster.server.create(DEFINITIONS, crd, WRITE)
        await refusal(cluster, Invalid, lambda: cluster.server.create(WIDGETS, widget(), WRITE, namespace="default"))
        colour = {"op": "add", "path": "/spec/color", "value": "red"}
        unknown = {"op": "add", "path": "/spec/unknown", "value": 1}
        cluster.register(MUTATING, webhook(cluster.hooks.on("/fill", patch(colour, unknown))))

        new = await cluster.create(WIDGETS, widget())

        assert new["spec"] == {"size": 3, "color": "red"}

    told(story)


def test_an_object_that_a_webhook_spoils_is_refused_by_the_rules() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/spoil", labelling("bad key!"))))

        error = await refusal(
            cluster, Invalid, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert error.message.startswith('ConfigMap "a" is invalid: metadata.labels: Invalid value: "bad key!"')

    told(story)


def test_the_cluster_completes_what_webhooks_add() -> None:
    async def story(cluster: Cluster) -> None:
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
        # It wants to see what is done to its object, and the cluster has added to its container.
        first, second = cluster.hooks.requests("/inject")
        assert len(first["object"]["spec"]["containers"]) == 1
        assert second["object"]["spec"] == new["spec"]

    told(story)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("Never", "Never", ["/a", "/b"], id="nobody wants it"),
        pytest.param("IfNeeded", "Never", ["/a", "/b", "/a"], id="changed after it"),
        pytest.param("Never", "IfNeeded", ["/a", "/b"], id="not changed after it"),
        pytest.param("IfNeeded", "IfNeeded", ["/a", "/b", "/a"], id="only whom it concerns"),
    ],
)
def test_webhooks_see_what_others_change_after_them(first: str, second: str, expected: list[str]) -> None:
    async def story(cluster: Cluster) -> None:
        annotate = {"op": "add", "path": "/metadata/annotations", "value": {"b": "b"}}
        cluster.register(
            MUTATING,
            webhook(cluster.hooks.on("/a", labelling("a")), name="a.example.com", reinvocationPolicy=first),
            webhook(cluster.hooks.on("/b", patch(annotate)), name="b.example.com", reinvocationPolicy=second),
        )

        new = await cluster.create(CONFIG_MAPS, config_map("x"))

        assert expected == [path for path, _ in cluster.hooks.asked]
        assert (new["metadata"]["labels"], new["metadata"]["annotations"]) == ({"a": "yes"}, {"b": "b"})
        assert "b" in str(cluster.hooks.asked[-1][1]["object"]["metadata"]) or expected[-1] == "/b"

    told(story)


def test_configurations_are_asked_in_the_order_of_their_names() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("zz", "aa", "mm"):
            cluster.register(MUTATING, webhook(cluster.hooks.on(f"/{name}", {})), name=name)

        await cluster.create(CONFIG_MAPS, config_map("x"))

        assert [path for path, _ in cluster.hooks.asked] == ["/aa", "/mm", "/zz"]

    told(story)


def test_of_several_refusals_the_first_counts() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("b", "a"):
            said = {"allowed": False, "status": {"message": name}}
            cluster.register(
                VALIDATING, webhook(cluster.hooks.on(f"/{name}", said), name=f"{name}.example.com"), name=name
            )

        error = await refusal(
            cluster, ApiError, lambda: cluster.server.create(CONFIG_MAPS, config_map("x"), WRITE, namespace="default")
        )

        assert error.message == 'admission webhook "a.example.com" denied the request: a'

    told(story)


@pytest.mark.parametrize(
    ("expression", "policy", "asked"),
    [
        pytest.param("object.metadata.name == 'a'", "Fail", 1, id="holds"),
        pytest.param("object.metadata.name == 'b'", "Fail", 0, id="does not hold"),
        pytest.param("object.spec.x == 1", "Ignore", 0, id="fails, and failures are ignored"),
        pytest.param("oldObject == null && !has(object.spec)", "Fail", 1, id="what was"),
        pytest.param(
            "request.operation == 'CREATE' && request.userInfo.username == 'alice' && request.subResource == ''",
            "Fail",
            1,
            id="the request",
        ),
    ],
)
def test_match_conditions(expression: str, policy: str, asked: int) -> None:
    async def story(cluster: Cluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}), failurePolicy=policy)
        hook["matchConditions"] = [{"name": "c", "expression": expression}]
        cluster.register(VALIDATING, hook)

        await cluster.create(CONFIG_MAPS, config_map("a"))

        assert asked == len(cluster.hooks.asked)

    told(story)


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
def test_a_match_condition_that_fails_refuses_the_request(expressions: list[str], expected: str) -> None:
    async def story(cluster: Cluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}))
        hook["matchConditions"] = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
        cluster.register(VALIDATING, hook)

        error = await refusal(
            cluster, Forbidden, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default")
        )

        assert error.message == f'configmaps "a" is forbidden: {expected}'
        assert cluster.hooks.asked == []

    told(story)


def test_a_dry_run_needs_a_webhook_without_side_effects() -> None:
    async def story(cluster: Cluster) -> None:
        hook = webhook(cluster.hooks.on("/agree", {}))
        stored = cluster.server.create(VALIDATING, {"metadata": {"name": "old"}, "webhooks": [hook]}, WRITE)
        # Configurations of old may say what is no longer accepted.
        stored["webhooks"][0]["sideEffects"] = "Some"

        error = await refusal(
            cluster, ApiError, lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), DRY, namespace="default")
        )

        assert (error.code, error.message) == (400, 'admission webhook "hook.example.com" does not support dry run')

    told(story)


def test_who_is_not_concerned_is_asked_nothing_and_waits_for_nobody() -> None:
    async def story(cluster: Cluster) -> None:
        hook = webhook({"url": "https://127.0.0.1:1/"}, rules=[EVERYTHING | {"resources": ["secrets"]}])
        cluster.register(VALIDATING, hook)
        performed = cluster.reviews.execute(
            lambda: cluster.server.create(CONFIG_MAPS, config_map("a"), WRITE, namespace="default"), USER
        )

        # It goes through without giving way to the event loop even once.
        with pytest.raises(StopIteration) as done:
            performed.send(None)

        assert done.value.value.value["metadata"]["name"] == "a"

    told(story)


def test_an_object_that_never_rests_is_a_conflict_in_the_end() -> None:
    async def story(cluster: Cluster) -> None:
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

        error = await refusal(cluster, Conflict, lambda: server.patch(CONFIG_MAPS, key("a"), change, WRITE))

        assert "the object has been modified; please apply your changes" in error.message
        assert server.get(CONFIG_MAPS, key("a"))["data"]["k"] == "v"

    told(story)


@pytest.mark.parametrize("verb", ["patch", "delete"])
def test_a_question_is_asked_anew_when_the_object_has_changed_meanwhile(verb: str) -> None:
    async def story(cluster: Cluster) -> None:
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

        await refusal(cluster, Forbidden, verbs[verb])

        assert server.get(CONFIG_MAPS, key("a"))["data"] == {"k": "guarded"}
        assert [request["oldObject"]["data"]["k"] for request in cluster.hooks.requests("/once")] == ["v", "guarded"]

    told(story)


def test_a_request_has_one_instant_and_draws_once() -> None:
    """The clock of the cluster may run fast: what is reviewed must not be another object for that."""
    ticks = iter(range(START, START + 10**6, 3600))

    async def story(cluster: Cluster) -> None:
        cluster.register(MUTATING, webhook(cluster.hooks.on("/change", labelling("a"))))
        cluster.register(VALIDATING, webhook(cluster.hooks.on("/agree", {})))

        created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "m-"}})

        assert len(cluster.hooks.asked) == 2
        (agreed,) = cluster.hooks.requests("/agree")
        given = {"name", "uid", "creationTimestamp", "managedFields"}
        assert {name: created["metadata"][name] for name in given} == {
            name: agreed["object"]["metadata"][name] for name in given
        }
        assert created["metadata"]["creationTimestamp"] == created["metadata"]["managedFields"][0]["time"]

    told(story, a_server(now=lambda: next(ticks)))


def test_a_generated_name_that_is_taken_meanwhile_is_drawn_again() -> None:
    async def story(cluster: Cluster) -> None:
        async def taking(request: Object) -> Object:
            if len(cluster.hooks.asked) == 1:
                cluster.server.create(CONFIG_MAPS, config_map(request["name"]), WRITE, namespace="default")
            return {}

        cluster.register(VALIDATING, webhook(cluster.hooks.on("/take", taking)))

        created = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "m-"}})

        first, second = cluster.hooks.requests("/take")
        assert first["name"] != second["name"] == created["metadata"]["name"]
        assert second["object"]["metadata"]["uid"] == created["metadata"]["uid"]

    told(story)


@pytest.mark.parametrize(
    ("owners", "kept"),
    [
        pytest.param([{}], True, id="no entries"),
        pytest.param([{"manager": "x", "operation": "Dance"}], True, id="no such operation"),
        pytest.param([7], True, id="nonsense"),
        pytest.param([], False, id="none"),
    ],
)
def test_managed_fields_that_make_no_sense_are_not_taken(owners: list[Any], kept: bool) -> None:
    async def story(cluster: Cluster) -> None:
        spoil = patch({"op": "add", "path": "/metadata/managedFields", "value": owners})
        cluster.register(MUTATING, webhook(cluster.hooks.on("/spoil", spoil)))

        new = await cluster.create(CONFIG_MAPS, config_map("a"))

        assert kept is ("managedFields" in new["metadata"])
        change = Patch.merge({"data": {"k": "w"}})
        await cluster.ask(lambda: cluster.server.patch(CONFIG_MAPS, key("a"), change, Write("other")))
        assert cluster.server.get(CONFIG_MAPS, key("a"))["data"] == {"k": "w"}

    told(story)
