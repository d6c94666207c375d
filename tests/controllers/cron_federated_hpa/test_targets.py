"""Targets of rules: kinds, ways of scaling, and firings that cannot be applied."""

from __future__ import annotations

import pytest
from tests.controllers.cron_federated_hpa.harness import (
    FEDERATED,
    HPA,
    KEDA,
    SCALED_OBJECT,
    autoscaler,
    changes,
    cron,
    definition,
    deployment,
    events,
    failures,
    federated,
    history,
    rule,
    scaled_object,
    successes,
    writes,
)

from springtide.cluster.client import Client
from springtide.cluster.errors import Conflict, Forbidden, Invalid, ServerError, TooManyRequests
from springtide.cluster.resources import Object, Resource
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.plan import RuleExecution
from springtide.controllers.cron_federated_hpa.targets import ReplicaBounds, combine_bounds
from springtide.simulator.scenario import Invariant, Scenario, create, delete, pause
from springtide.simulator.world import World

WIDGET = {"apiVersion": "example.com/v1alpha1", "kind": "Widget", "name": "shop"}
FIRES = "2026-06-05T08:30:00Z"


def cron_scenario(*objects: Object) -> Scenario:
    return Scenario("cron", start="2026-06-05T08:00:00Z").given(*objects).running(CronFederatedHPAController)


def widget(**spec: int) -> Object:
    return {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": "shop"},
        "spec": {"replicas": 1, **spec},
    }


def test_bounds_moved_by_two_objects_are_applied_in_either_order() -> None:
    """The new minimum exceeds the maximum until the other object raises it; a retry applies it soon."""
    low = cron(rule("low", "30 8 * * *", targetMinReplicas=20), target=FEDERATED, name="a")
    high = cron(rule("high", "30 8 * * *", targetMaxReplicas=50), target=FEDERATED, name="b")
    outcome = cron_scenario(deployment(), federated(1, 10), low, high).run("1h")

    spec = outcome.object("FederatedHPA", "shop")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (20, 50)
    assert [at for at, _ in successes(outcome, "low", "a")] == [FIRES]


def test_custom_kind_with_a_scale_is_scaled() -> None:
    """Like a workload of Kubernetes."""
    kind = definition("example.com", "Widget", "widgets", scale=True)
    outcome = cron_scenario(kind, widget(), cron(rule("r", "30 8 * * *", 7), target=WIDGET)).run("1h")

    assert changes(outcome, "Widget", "replicas") == [(FIRES, 7)]
    assert successes(outcome, "r") == [(FIRES, FIRES)]


@pytest.mark.parametrize(
    ("kind", "expected_text"),
    [
        pytest.param(None, "the cluster has no kind Widget in example.com/v1alpha1", id="unknown kind"),
        pytest.param(
            definition("example.com", "Widget", "widgets"), "has no scale subresource", id="no scale subresource"
        ),
        pytest.param(
            definition("example.com", "Widget", "widgets", scope="Cluster", scale=True),
            "Widget objects are in no namespace",
            id="cluster-scoped",
        ),
    ],
)
def test_unscalable_kind_fails_without_retries(kind: Object | None, expected_text: str) -> None:
    """A retry would not change the result."""
    given = () if kind is None else (kind, widget())
    outcome = cron_scenario(*given, cron(rule("r", "30 8 * * *", 7), target=WIDGET)).run("31m")

    ((at, message),) = failures(outcome, "r")
    assert at == FIRES
    assert expected_text in message
    assert history(outcome, "r")["failedExecutions"][0]["executionTime"] == FIRES


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_bounds_of_a_horizontal_pod_autoscaler_are_set(version: str) -> None:
    """In both served versions."""
    target = {**HPA, "apiVersion": f"autoscaling/{version}"}
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=20, targetMaxReplicas=40), target=target)
    outcome = cron_scenario(autoscaler(1, 10), made).run("1h")

    assert changes(outcome, "HorizontalPodAutoscaler", "minReplicas") == [(FIRES, 20)]
    assert changes(outcome, "HorizontalPodAutoscaler", "maxReplicas") == [(FIRES, 40)]
    (entry,) = history(outcome, "r")["successfulExecutions"]
    assert (entry["appliedMinReplicas"], entry["appliedMaxReplicas"]) == (20, 40)


@pytest.mark.parametrize(
    ("present", "wanted", "expected"),
    [
        pytest.param({}, {"targetMinReplicas": 5}, {"minReplicaCount": 5}, id="defaults"),
        pytest.param({"minReplicaCount": 5}, {"targetMinReplicas": 0}, {"minReplicaCount": 0}, id="minimum zero"),
        pytest.param({}, {"targetMinReplicas": 0}, {}, id="unchanged"),
        pytest.param(
            {"minReplicaCount": 1, "maxReplicaCount": 3},
            {"targetMinReplicas": 10, "targetMaxReplicas": 30},
            {"minReplicaCount": 10, "maxReplicaCount": 30},
            id="both",
        ),
    ],
)
def test_bounds_of_a_scaled_object_are_set(present: Object, wanted: Object, expected: Object) -> None:
    """KEDA has other field names and defaults, and allows a minimum of zero."""
    outcome = cron_scenario(
        KEDA, scaled_object(**present), cron(rule("r", "30 8 * * *", **wanted), target=SCALED_OBJECT)
    ).run("1h")

    spec = outcome.object("ScaledObject", "shop")["spec"]
    assert {name: spec.get(name) for name in expected} == expected
    assert len(successes(outcome, "r")) == 1


def test_unset_maximum_of_a_scaled_object_is_its_default() -> None:
    """KEDA's default is 100, and a minimum above it is rejected."""
    made = cron(rule("r", "30 8 * * *", targetMinReplicas=101), target=SCALED_OBJECT)
    outcome = cron_scenario(KEDA, scaled_object(), made).run("1h")

    ((_, message),) = failures(outcome, "r")
    assert "the minimum 101 would be greater than the maximum of ScaledObject `shop`, 100" in message


def _execution(rule_name: str, **values: int) -> RuleExecution:
    return RuleExecution(rule_name, 0, values, None, 0)


@pytest.mark.parametrize(
    ("present", "executions", "after", "refused"),
    [
        pytest.param(
            ReplicaBounds(1, 10),
            [_execution("min", min=1000), _execution("max", max=2000)],
            ReplicaBounds(1000, 2000),
            [],
            id="valid together",
        ),
        pytest.param(
            ReplicaBounds(1, 10),
            [_execution("min", min=1000), _execution("max", max=20)],
            ReplicaBounds(1, 20),
            ["min"],
            id="one rejected",
        ),
        pytest.param(
            ReplicaBounds(5, 10),
            [_execution("max", max=3)],
            ReplicaBounds(5, 10),
            ["max"],
            id="maximum below the minimum",
        ),
        pytest.param(
            ReplicaBounds(5, None), [_execution("min", min=99)], ReplicaBounds(99, None), [], id="unset maximum"
        ),
    ],
)
def test_minimum_never_exceeds_the_maximum(
    present: ReplicaBounds, executions: list[RuleExecution], after: ReplicaBounds, refused: list[str]
) -> None:
    """Executions are applied together where the result is valid, else one after another."""
    move = combine_bounds(present, executions, "FederatedHPA `shop`")

    assert move.bounds == after
    assert list(move.refused) == refused


def test_two_rules_of_one_instant_are_applied_in_one_write() -> None:
    """One raises the minimum above the maximum, the other raises the maximum."""
    made = cron(
        rule("low", "30 8 * * *", targetMinReplicas=1000),
        rule("high", "30 8 * * *", targetMaxReplicas=2000),
        target=FEDERATED,
    )
    outcome = cron_scenario(federated(1, 10), made).run("1h")

    assert [kind for _, kind in writes(outcome)].count("FederatedHPA") == 1
    assert len(successes(outcome, "low")) == len(successes(outcome, "high")) == 1


def test_target_created_later_is_scaled_by_a_retry() -> None:
    """Retries have a growing backoff."""
    outcome = cron_scenario(cron(rule("r", "30 8 * * *", 7))).at("30m10s", create(deployment())).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:15Z", 7)]
    assert successes(outcome, "r") == [(FIRES, "2026-06-05T08:30:15Z")]
    assert failures(outcome, "r") == []


@pytest.mark.parametrize(
    ("made", "tries", "given_up"),
    [
        pytest.param(rule("r", "30 8 * * *", 7), 8, "2026-06-05T08:32:03Z", id="eight tries in two minutes"),
        pytest.param(rule("r", "30,31 8 * * *", 7), 6, "2026-06-05T08:30:31Z", id="until the next firing"),
        pytest.param(
            rule("r", "30 8 * * *", 7, maxDelaySeconds=20), 5, "2026-06-05T08:30:15Z", id="within the maximum delay"
        ),
    ],
)
def test_retries_for_a_missing_target_are_bounded(made: Object, tries: int, given_up: str) -> None:
    """The failed execution has the number of tries."""
    outcome = cron_scenario(cron(made)).run("1h")

    entry = history(outcome, "r")["failedExecutions"][-1]
    assert entry == {
        "scheduleTime": FIRES,
        "executionTime": given_up,
        "message": f"there is no Deployment `shop` (tried {tries} times)",
    }


def test_retries_end_with_the_next_firing() -> None:
    """The process was down when the retries should have ended: the message says both."""
    outcome = cron_scenario(cron(rule("r", "30,31 8 * * *", 7))).at("30m10s", pause("springtide-0", 70)).run("1h")

    expected_text = (
        "there is no Deployment `shop` (tried 4 times), and then the rule fired again at 2026-06-05T08:31:00Z"
    )
    at, message = failures(outcome, "r")[-1]
    assert at == FIRES
    assert message.startswith(expected_text)


def test_retried_rule_does_not_delay_other_rules() -> None:
    """A retried minimum does not delay a maximum, and vice versa."""
    made = cron(
        rule("low", "30 8 * * *", targetMinReplicas=5),
        rule("high", "31 8 * * *", targetMaxReplicas=50),
        target=FEDERATED,
    )
    outcome = cron_scenario(made).at("31m", create(federated(1, 10))).run("1h")

    assert successes(outcome, "high") == [("2026-06-05T08:31:00Z", "2026-06-05T08:31:00Z")]
    assert successes(outcome, "low") == [(FIRES, "2026-06-05T08:31:03Z")]


class RejectWrites(Invariant):
    """Answer the first writes to a kind with an error."""

    def __init__(self, kind: str, answer: Exception, times: int) -> None:
        self._kind, self._answer, self.left_over = kind, answer, times

    def begin(self, world: World) -> None:
        """Wrap the patch method of the API server."""
        patch = world.server.patch

        def rejecting(resource, *arguments, **more):  # type: ignore[no-untyped-def]
            if resource.kind == self._kind and self.left_over:
                self.left_over -= 1
                raise self._answer
            return patch(resource, *arguments, **more)

        world.server.patch = rejecting  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("answer", "times", "applied_at", "expected_text"),
    [
        pytest.param(Conflict("changed"), 4, FIRES, "", id="conflicts are retried at once"),
        pytest.param(Conflict("changed"), 5, "2026-06-05T08:30:01Z", "", id="five conflicts are a failed try"),
        pytest.param(ServerError("a webhook failed"), 2, "2026-06-05T08:30:03Z", "", id="server error"),
        pytest.param(
            TooManyRequests("later", retry_after=20), 1, "2026-06-05T08:30:20Z", "", id="retry after the server's delay"
        ),
        pytest.param(Invalid("too many"), 1, "", "could not be changed: too many", id="invalid"),
        pytest.param(Forbidden("no"), 1, "", "could not be changed: no", id="forbidden"),
    ],
)
def test_retryable_errors_are_retried_and_others_recorded(
    answer: Exception, times: int, applied_at: str, expected_text: str
) -> None:
    """A permanent error is a failed execution at once."""
    outcome = (
        cron_scenario(deployment(), cron(rule("r", "30 8 * * *", 7)))
        .always(lambda: RejectWrites("Deployment", answer, times))
        .run("1h")
    )

    if applied_at:
        assert successes(outcome, "r") == [(FIRES, applied_at)]
        assert failures(outcome, "r") == []
    else:
        ((at, message),) = failures(outcome, "r")
        assert (at, message) == (FIRES, f"Deployment `shop` {expected_text}")
        assert events(outcome, "ScaleFailed") == [f"rule `r` could not apply its firing of {FIRES}: {message}"]


def test_failed_firing_is_not_applied_to_a_recreated_target() -> None:
    """The next firing is applied to it."""
    outcome = (
        cron_scenario(deployment(), cron(rule("r", "30 8,9 * * *", 7)))
        .at("20m", delete("Deployment", "shop"))
        .at("45m", create(deployment(replicas=2)))
        .run("2h")
    )

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T09:30:00Z", 7)]
    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T09:30:00Z"]
    assert [at for at, _ in failures(outcome, "r")] == [FIRES]


@pytest.mark.parametrize(("replicas", "requests"), [(1, 1), (7, 0)])
def test_a_target_that_has_the_replicas_already_is_not_written(
    replicas: int, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The firing is recorded as applied all the same."""
    sent: list[int] = []
    scale = Client.scale

    async def counted(self: Client, resource: Resource, replicas: int, *, of: Object, because: str) -> Object:
        sent.append(replicas)
        return await scale(self, resource, replicas, of=of, because=because)

    monkeypatch.setattr(Client, "scale", counted)
    outcome = cron_scenario(deployment(replicas=replicas), cron(rule("r", "30 8 * * *", 7))).run("1h")

    assert sent == [7] * requests
    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", "2026-06-05T08:30:00Z")]
