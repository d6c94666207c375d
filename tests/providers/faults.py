"""Faults of AWS that moto does not play: a layer around boto3's clients that fails, delays and tells half of it."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

Call: TypeAlias = Callable[[], dict[str, Any]]
Fault: TypeAlias = Callable[[Call], dict[str, Any]]
"""What becomes of one call: it may make it, or not, and answer whatever it likes."""

WRITES = ("set_desired_capacity", "update_nodegroup_config")


class Faulty:
    """A client of boto3 whose next calls meet what is planned for them; all others pass."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._planned: dict[str, deque[Fault]] = {}
        self.calls: list[str] = []
        self.writes = 0
        """Writes that took effect."""

    def plan(self, operation: str, *faults: Fault) -> None:
        """Let the next calls of an operation meet these, in this order, instead of what was planned before."""
        self._planned[operation] = deque(faults)

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        def call(**arguments: Any) -> dict[str, Any]:
            self.calls.append(operation)

            def pass_on() -> dict[str, Any]:
                answer: dict[str, Any] = getattr(self._inner, operation)(**arguments)
                self.writes += operation in WRITES
                return answer

            planned = self._planned.get(operation)
            return planned.popleft()(pass_on) if planned else pass_on()

        return call


def refusing(code: str, message: str = "no", http_status: int = 400) -> Fault:
    """AWS says no."""

    def fault(call: Call) -> dict[str, Any]:
        answer = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": http_status}}
        raise ClientError(answer, "TheOperation")

    return fault


def throttled() -> Fault:
    """Too many have asked."""
    return refusing("Throttling", "Rate exceeded")


def unreachable(call: Call) -> dict[str, Any]:
    """Nobody answers at all."""
    raise EndpointConnectionError(endpoint_url="https://user:secret@proxy.example.com")


def answer_lost(call: Call) -> dict[str, Any]:
    """It took effect, and the answer never came."""
    call()
    raise ReadTimeoutError(endpoint_url="https://autoscaling.eu-west-1.amazonaws.com")


def pending(count: int) -> Fault:
    """The last instances of an Auto Scaling group are still being made."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            for instance in group["Instances"][-count:]:
                instance["LifecycleState"] = "Pending"
        return answer

    return fault


def partial(count: int) -> Fault:
    """There is no capacity for more than so many instances."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            group["Instances"] = group["Instances"][:count]
        return answer

    return fault


def group_says(**fields: Any) -> Fault:
    """The description of an Auto Scaling group says something else."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        for group in answer["AutoScalingGroups"]:
            group.update(fields)
        return answer

    return fault


def node_group_says(**fields: Any) -> Fault:
    """The description of an EKS node group says something else."""

    def fault(call: Call) -> dict[str, Any]:
        answer = copy.deepcopy(call())
        answer["nodegroup"].update(fields)
        return answer

    return fault
