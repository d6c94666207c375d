"""How a server judges HorizontalPodAutoscalers: bounds, targets, metrics, behavior and version 1.

The table follows the rules of the API reference, one case for each side of each bound. `check` is judged by the same
answers.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.case import each
from tests.conformance.samples import autoscaler
from tests.conformance.session import Object, Session

_DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_USE = {"type": "Utilization", "averageUtilization": 60}
_VALUE = {"type": "Value", "value": "10"}
_AVERAGE = {"type": "AverageValue", "averageValue": "10"}
_MAIN = {"type": "Percent", "value": 50, "periodSeconds": 60}


def _target(**changed: Any) -> Object:
    return autoscaler(scaleTargetRef={key: value for key, value in (_DEPLOYMENT | changed).items() if value != ""})


def _of(kind: str, source: str, **fields: Any) -> Object:
    metric: Object = {"type": kind, source: {key: value for key, value in fields.items() if value is not None}}
    return autoscaler(metrics=[metric])


def _resource(target: Any = _USE, name: str | None = "cpu") -> Object:
    return _of("Resource", "resource", name=name, target=target)


def _container(target: Any = _USE, name: str | None = "cpu", container: str | None = "main") -> Object:
    return _of("ContainerResource", "containerResource", name=name, container=container, target=target)


def _pods(target: Any = _AVERAGE, metric: Any = {"name": "requests"}) -> Object:  # noqa: B006 - never changed
    return _of("Pods", "pods", metric=metric, target=target)


def _external(target: Any = _VALUE, metric: Any = {"name": "backlog"}) -> Object:  # noqa: B006 - never changed
    return _of("External", "external", metric=metric, target=target)


def _object(target: Any = _VALUE, metric: Any = {"name": "hits"}, **described: Any) -> Object:  # noqa: B006
    known = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"} | described
    reference = {key: value for key, value in known.items() if value != ""}
    return _of("Object", "object", describedObject=reference, metric=metric, target=target)


def _with(item: Object, **spec: Any) -> Object:
    return {**item, "spec": {**item["spec"], **spec}}


def _up(**rules: Any) -> Object:
    return autoscaler(behavior={"scaleUp": rules})


def _down(**rules: Any) -> Object:
    return autoscaler(behavior={"scaleDown": rules})


def _policy(**changed: Any) -> Object:
    return _up(policies=[{key: value for key, value in (_MAIN | changed).items() if value is not None}])


def _first(**spec: Any) -> Object:
    return {**autoscaler(**spec), "apiVersion": "autoscaling/v1"}


def _metadata(**metadata: Any) -> Object:
    return {**autoscaler(), "metadata": {"name": "web", **metadata}}


_SOURCES: dict[str, Object] = {
    "resource": {"name": "cpu", "target": _USE},
    "pods": {"metric": {"name": "requests"}, "target": _AVERAGE},
    "external": {"metric": {"name": "backlog"}, "target": _VALUE},
}

BOUNDS: dict[str, Object] = {
    "no minimum": autoscaler(),
    "minimum of the maximum": autoscaler(minReplicas=3),
    "minimum above the maximum": autoscaler(minReplicas=4),
    "minimum of zero": autoscaler(minReplicas=0),
    "minimum of zero and a resource metric": _with(_resource(), minReplicas=0),
    "minimum of zero and an object metric": _with(_object(), minReplicas=0),
    "minimum of zero and an external metric": _with(_external(), minReplicas=0),
    "negative minimum": autoscaler(minReplicas=-1),
    "minimum as a text": autoscaler(minReplicas="1"),
    "minimum with a fraction": autoscaler(minReplicas=1.5),
    "maximum of zero": autoscaler(maxReplicas=0),
    "negative maximum": autoscaler(maxReplicas=-2),
    "no maximum": autoscaler(maxReplicas=None),
    "maximum beyond 32 bits": autoscaler(maxReplicas=2**31),
    "unknown field": autoscaler(colour="red"),
    "misspelt minimum": autoscaler(minReplica=2),
}

TARGETS: dict[str, Object] = {
    "no target": autoscaler(scaleTargetRef=None),
    "empty target": autoscaler(scaleTargetRef={}),
    "no kind": _target(kind=""),
    "no name": _target(name=""),
    "no version": _target(apiVersion=""),
    "version without a group": _target(apiVersion="v1"),
    "version of an empty group": _target(apiVersion="/v1"),
    "version of two groups": _target(apiVersion="apps/extra/v1"),
    "group without a version": _target(apiVersion="apps/"),
    "replication controller": _target(apiVersion="v1", kind="ReplicationController"),
    "replication controller without a version": _target(apiVersion="", kind="ReplicationController"),
    "replication controller of two groups": _target(apiVersion="a/b/c", kind="ReplicationController"),
    "custom kind": _target(apiVersion="example.com/v1", kind="Widget"),
    "kind of two dots": _target(kind=".."),
    "kind of one dot": _target(kind="."),
    "kind with a slash": _target(kind="apps/Deployment"),
    "kind with a percent sign": _target(kind="Deployment%"),
    "name of two dots": _target(name=".."),
    "name of one dot": _target(name="."),
    "name with a slash": _target(name="shop/web"),
    "name with a percent sign": _target(name="web%2f"),
    "name with slash and percent sign": _target(name="a/b%c"),
    "name in capitals": _target(name="Web"),
    "unknown field": _target(namespace="shop"),
}

METRICS: dict[str, Object] = {
    "no metrics": autoscaler(metrics=[]),
    "no type": autoscaler(metrics=[{"resource": _SOURCES["resource"]}]),
    "unknown type": autoscaler(metrics=[{"type": "Mood", "resource": _SOURCES["resource"]}]),
    "type in lower case": autoscaler(metrics=[{"type": "resource", "resource": _SOURCES["resource"]}]),
    "type without a source": autoscaler(metrics=[{"type": "Resource"}]),
    "source of another type": autoscaler(metrics=[{"type": "Pods", "resource": _SOURCES["resource"]}]),
    "two sources": autoscaler(
        metrics=[{"type": "Resource", "resource": _SOURCES["resource"], "pods": _SOURCES["pods"]}]
    ),
    "three sources": autoscaler(metrics=[{"type": "External", **_SOURCES}]),
    "second one without a source": autoscaler(metrics=[_resource()["spec"]["metrics"][0], {"type": "Object"}]),
    "three good ones": autoscaler(metrics=[item["spec"]["metrics"][0] for item in (_resource(), _pods(), _external())]),
    "mapping for a list": autoscaler(metrics=_resource()["spec"]["metrics"][0]),
    "unknown field": autoscaler(metrics=[{"type": "Resource", "resource": {**_SOURCES["resource"], "mood": 1}}]),
}

RESOURCES: dict[str, Object] = {
    "utilization": _resource(),
    "average value": _resource({"type": "AverageValue", "averageValue": "500m"}),
    "no target": _resource(None),
    "neither utilization nor value": _resource({"type": "Utilization"}),
    "raw value": _resource(_VALUE),
    "utilization and average value": _resource({**_USE, "averageValue": "500m"}),
    "utilization of zero": _resource({**_USE, "averageUtilization": 0}),
    "negative utilization": _resource({**_USE, "averageUtilization": -10}),
    "utilization above 100": _resource({**_USE, "averageUtilization": 250}),
    "utilization as a percentage": _resource({**_USE, "averageUtilization": "60%"}),
    "average value of zero": _resource({"type": "AverageValue", "averageValue": "0"}),
    "negative average value": _resource({"type": "AverageValue", "averageValue": "-1"}),
    "average value that is not a quantity": _resource({"type": "AverageValue", "averageValue": "much"}),
    "no name": _resource(name=None),
    "unknown name": _resource(name="speed"),
    "name with a blank": _resource(name="a b"),
    "target without a type": _resource({"averageUtilization": 60}),
    "target of an unknown type": _resource({"type": "Average", "averageUtilization": 60}),
    "target of another type": _resource({"type": "Value", "averageUtilization": 60}),
    "container utilization": _container(),
    "container average value": _container(_AVERAGE),
    "container without a target": _container(None),
    "container with neither utilization nor value": _container({"type": "Utilization"}),
    "container with utilization and average value": _container({**_USE, "averageValue": "500m"}),
    "container utilization of zero": _container({**_USE, "averageUtilization": 0}),
    "no container": _container(container=None),
    "container in capitals": _container(container="Main"),
    "container with a dot": _container(container="main.first"),
    "container resource without a name": _container(name=None),
    "container resource of an unknown name": _container(name="speed"),
    "container resource with a blank": _container(name="a b"),
    "container resource with a domain": _container(name="example.com/gpu"),
    "container resource of a request": _container(name="requests.cpu"),
}

PODS: dict[str, Object] = {
    "average value": _pods(),
    "no average value": _pods({"type": "AverageValue"}),
    "raw value": _pods(_VALUE),
    "utilization": _pods(_USE),
    "average value of zero": _pods({"type": "AverageValue", "averageValue": 0}),
    "negative average value": _pods({"type": "AverageValue", "averageValue": "-10"}),
    "negative raw value beside it": _pods({**_AVERAGE, "value": "-1"}),
    "no target": _pods(None),
    "no metric": _pods(metric=None),
    "metric without a name": _pods(metric={}),
    "metric of two dots": _pods(metric={"name": ".."}),
    "metric with a slash": _pods(metric={"name": "http/requests"}),
    "metric with a percent sign": _pods(metric={"name": "busy%"}),
    "metric with capitals and colons": _pods(metric={"name": "HTTP:requests_total"}),
    "selector": _pods(metric={"name": "requests", "selector": {"matchLabels": {"verb": "GET"}}}),
    "selector of an unknown operator": _pods(
        metric={"name": "requests", "selector": {"matchExpressions": [{"key": "verb", "operator": "Like"}]}}
    ),
}

OBJECTS: dict[str, Object] = {
    "value": _object(),
    "average value": _object(_AVERAGE),
    "value and average value": _object({**_VALUE, "averageValue": "10"}),
    "neither value nor average value": _object({"type": "Value"}),
    "utilization": _object(_USE),
    "value of zero": _object({"type": "Value", "value": "0"}),
    "negative value": _object({"type": "Value", "value": "-1"}),
    "negative average value": _object({"type": "AverageValue", "averageValue": "-1"}),
    "no metric name": _object(metric={"name": ""}),
    "metric with a slash": _object(metric={"name": "a/b"}),
    "no kind": _object(kind=""),
    "kind with a slash": _object(kind="networking/Ingress"),
    "no object name": _object(name=""),
    "object name of two dots": _object(name=".."),
    "object name with a percent sign": _object(name="a%b"),
    "no version": _object(apiVersion=""),
    "version of two groups": _object(apiVersion="a/b/c"),
}

EXTERNALS: dict[str, Object] = {
    "value": _external(),
    "average value": _external(_AVERAGE),
    "value and average value": _external({**_VALUE, "averageValue": "10"}),
    "neither value nor average value": _external({"type": "Value"}),
    "utilization": _external(_USE),
    "value of zero": _external({"type": "Value", "value": "0"}),
    "negative value": _external({"type": "Value", "value": "-5"}),
    "negative average value": _external({"type": "AverageValue", "averageValue": "-5"}),
    "tiny value": _external({"type": "Value", "value": "1n"}),
    "value with a fraction": _external({"type": "Value", "value": 0.5}),
    "no metric name": _external(metric={"selector": {"matchLabels": {"queue": "mail"}}}),
    "metric with a slash": _external(metric={"name": "queue/backlog"}),
    "metric of two dots": _external(metric={"name": ".."}),
    "selector": _external(metric={"name": "backlog", "selector": {"matchLabels": {"queue": "mail"}}}),
    "selector as a text": _external(metric={"name": "backlog", "selector": "queue=mail"}),
}

BEHAVIORS: dict[str, Object] = {
    "empty": autoscaler(behavior={}),
    "empty directions": autoscaler(behavior={"scaleUp": {}, "scaleDown": {}}),
    "window of zero": _up(stabilizationWindowSeconds=0),
    "window of an hour": _down(stabilizationWindowSeconds=3600),
    "window of more than an hour": _down(stabilizationWindowSeconds=3601),
    "negative window": _up(stabilizationWindowSeconds=-1),
    "window as a text": _down(stabilizationWindowSeconds="5m"),
    "select policy": _down(selectPolicy="Min"),
    "disabled": _down(selectPolicy="Disabled"),
    "unknown select policy": _up(selectPolicy="Some"),
    "select policy in lower case": _up(selectPolicy="max"),
    "no policies": _up(policies=[]),
    "pods and percent": _up(policies=[_MAIN, {"type": "Pods", "value": 4, "periodSeconds": 60}]),
    "policy without a type": _policy(type=None),
    "policy of an unknown type": _policy(type="Nodes"),
    "policy without a value": _policy(value=None),
    "value of zero": _policy(value=0),
    "negative value": _policy(value=-4),
    "value above 100 percent": _policy(value=900),
    "policy without a period": _policy(periodSeconds=None),
    "period of zero": _policy(periodSeconds=0),
    "negative period": _policy(periodSeconds=-15),
    "period of half an hour": _policy(periodSeconds=1800),
    "period of more than half an hour": _policy(periodSeconds=1801),
    "misspelt period": _policy(periodSeconds=None, period=60),
    "tolerance": _down(tolerance="0.05"),
    "tolerance of zero": _down(tolerance=0),
    "tolerance as a number": _up(tolerance=0.2),
    "negative tolerance": _up(tolerance="-0.01"),
    "tolerance that is not a quantity": _down(tolerance="5%"),
    "wrong in both directions": autoscaler(
        behavior={"scaleUp": {"stabilizationWindowSeconds": -1}, "scaleDown": {"policies": [], "tolerance": "-1"}}
    ),
    "unknown field": autoscaler(behavior={"scaleUP": {"selectPolicy": "Max"}}),
}

FIRST_VERSION: dict[str, Object] = {
    "bounds alone": _first(),
    "target": _first(targetCPUUtilizationPercentage=80),
    "target of zero": _first(targetCPUUtilizationPercentage=0),
    "negative target": _first(targetCPUUtilizationPercentage=-5),
    "minimum of zero": _first(minReplicas=0),
    "minimum above the maximum": _first(minReplicas=9),
    "no maximum": _first(maxReplicas=None),
    "target name of two dots": _first(scaleTargetRef={**_DEPLOYMENT, "name": ".."}),
    "target without a group": _first(scaleTargetRef={**_DEPLOYMENT, "apiVersion": "v1"}),
    "metrics of version 2": _first(metrics=_resource()["spec"]["metrics"]),
    "behavior of version 2": _first(behavior={"scaleUp": {"stabilizationWindowSeconds": 0}}),
}

METADATA: dict[str, Object] = {
    "no name": {**autoscaler(), "metadata": {}},
    "name in capitals": _metadata(name="Web"),
    "name with an underscore": _metadata(name="web_1"),
    "name of 253 characters": _metadata(name="a" * 253),
    "name of 254 characters": _metadata(name="a" * 254),
    "label value with a blank": _metadata(labels={"team": "a b"}),
    "label key of two slashes": _metadata(labels={"a/b/c": "d"}),
    "annotation key with a blank": _metadata(annotations={"a b": "c"}),
    "status is ignored": {**autoscaler(), "status": {"desiredReplicas": -1}},
}

AUTOSCALERS: dict[str, Object] = {
    f"{about}: {name}": item
    for about, table in (
        ("bounds", BOUNDS),
        ("target", TARGETS),
        ("metrics", METRICS),
        ("resource", RESOURCES),
        ("pods", PODS),
        ("object", OBJECTS),
        ("external", EXTERNALS),
        ("behavior", BEHAVIORS),
        ("version 1", FIRST_VERSION),
        ("metadata", METADATA),
    )
    for name, item in table.items()
}


@each(AUTOSCALERS)
def judged(session: Session, item: Object) -> None:
    session.create(f"{item['apiVersion']}/horizontalpodautoscalers", item, dryRun="All", fieldValidation="Strict")
