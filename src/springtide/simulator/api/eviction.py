"""Evictions: the deletion of a pod that asks its disruption budget first.

The budget is decided here and nowhere else: `disruptionsAllowed` is counted down, and the pod noted in
`disruptedPods`, in the same step that lets it go, so that two evictions can never spend the same allowance.
"""

from __future__ import annotations

from springtide.cluster.errors import BadRequest, Cause, TooManyRequests
from springtide.cluster.resources import Object
from springtide.simulator.api import pods
from springtide.simulator.api.answers import forbidden
from springtide.simulator.api.selectors import selector_of

SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."

_FREE_TO_GO = ("Pending", "Succeeded", "Failed")
_MOST_DISRUPTED = 2000
_WAIT_FOR_SYNC = 10.0


def needs_no_budget(pod: Object) -> bool:
    """Tell whether a pod may go whatever its budget says: it does not run, or is going already."""
    return (pod.get("status") or {}).get("phase") in _FREE_TO_GO or "deletionTimestamp" in pod["metadata"]


def budget_of(pod: Object, budgets: list[Object]) -> Object | None:
    """Find the budget of a pod among those of its namespace."""
    labels = pod["metadata"].get("labels")
    found = [each for each in budgets if selector_of((each.get("spec") or {}).get("selector")).matches(labels)]
    if len(found) > 1:
        # A kube-apiserver blames itself; but no other try ends better before somebody mends the budgets.
        raise BadRequest(SEVERAL_BUDGETS)
    return found[0] if found else None


def needs_no_allowance(pod: Object, budget: Object) -> bool:
    """Tell whether a pod may go without being counted: it is not healthy, and its budget does not mind."""
    if pods.is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def spent(budget: Object, pod: Object, now: str) -> Object:
    """Give the budget with one disruption less; refuse where it has none."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _WAIT_FOR_SYNC)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("poddisruptionbudget.policy", name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget.policy", name, why)
    if not allowed:
        raise _refused(_why_none(name, status))
    left = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod["metadata"]["name"]: now}}
    if allowed == 1:
        left["conditions"] = _exhausted(status.get("conditions") or [], budget["metadata"].get("generation", 0), now)
    return {**budget, "status": left}


def _why_none(name: str, status: Object) -> str:
    held: Object = next(
        (
            each
            for each in status.get("conditions") or ()
            if each.get("type") == "DisruptionAllowed" and each.get("status") == "False" and each.get("message")
        ),
        {},
    )
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if held.get("reason") == "SyncFailed":
        failed = f"because it failed sync: {held['message']}"
        return f"The disruption budget {name} does not allow evicting pods currently {failed}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if held:
        return (
            f"The disruption budget {name} does not allow evicting pods currently ({held['reason']}): {held['message']}"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _exhausted(conditions: list[Object], generation: int, now: str) -> list[Object]:
    """Give the conditions of a budget that allows nothing more."""
    fresh = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    if not any(each.get("type") == "DisruptionAllowed" for each in conditions):
        return [*conditions, fresh]
    return [
        each if each.get("type") != "DisruptionAllowed" else each if each.get("status") == "False" else fresh
        for each in conditions
    ]


def _refused(why: str, retry_after: float | None = None) -> TooManyRequests:
    return TooManyRequests(REFUSED, causes=(Cause("", why, "DisruptionBudget"),), retry_after=retry_after)
