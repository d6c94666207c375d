"""All mistakes together, with what is right, and what is accepted with a warning.

Some mistakes are refused by the schemas of the CRDs alone; the others are refused only by our webhooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.e2e.refusals import autoscalers, cron_rules, producers
from tests.e2e.refusals.autoscalers import aimed, autoscaler
from tests.e2e.refusals.cron_rules import FEDERATED, HPA, RULE, SCALED_OBJECT, bounds, cron
from tests.e2e.refusals.groups_and_grants import GRANT_ROWS, NODE_GROUP_ROWS, grant, node_group
from tests.e2e.refusals.producers import scheduled
from tests.e2e.refusals.rows import DEPLOYMENT, KARMADA, Refused, written

from springtide.cluster.resources import Object

PLURALS = {
    "CronFederatedHPA": "cronfederatedhpas",
    "MetricsProducer": "metricsproducers",
    "HorizontalAutoscaler": "horizontalautoscalers",
    "ScalableNodeGroup": "scalablenodegroups",
    "Grant": "grants",
}

RIGHT = (
    cron(),
    bounds(FEDERATED, targetMinReplicas=2, targetMaxReplicas=9),
    bounds(HPA, targetMinReplicas=2),
    bounds(SCALED_OBJECT, targetMinReplicas=0),
    cron({"schedule": None, "at": "2100-01-01T00:00:00Z"}),
    cron({"schedule": "0 0 13 * 5", "maxDelaySeconds": 600, "timeZone": "Asia/Shanghai"}),
    scheduled(),
    scheduled({"start": {"weekdays": "Monday,7", "hours": 8}, "end": {"weekdays": "Mon,Sun", "hours": 17}}),
    scheduled({"start": None, "end": None, "from": "2100-01-01T00:00:00Z", "until": "2100-01-02T00:00:00Z"}),
    autoscaler(),
    node_group(),
    node_group(type="ClusterAPI", id="default/workers"),
    grant(urls=["https://prom.example.com/"]),
)
"""What every row here is a mistake away from."""

_FEBRUARY = {"days": "29", "months": "Feb"}
WARNED = {
    "V08": (scheduled({"start": _FEBRUARY}), "leap years only"),
    "V11": (scheduled(timezone="EST"), "spec.schedule.timezone"),
    "zone-without-daylight-saving": (cron({"timeZone": "EST"}), f"{RULE}.timeZone"),
    "replicas-of-a-federated-hpa": (bounds(FEDERATED, targetReplicas=1, targetMinReplicas=1), "is ignored"),
    "bounds-of-a-workload": (cron({"targetMinReplicas": 1}), "remove `targetMinReplicas`"),
    "no-rules": (written("CronFederatedHPA", KARMADA, {"scaleTargetRef": DEPLOYMENT, "rules": []}), "add a rule"),
    "not-promql": (
        aimed("max(a{name='x'}, b{name='y'})", type="Value", value="1"),
        "write `max(a{name='x'} or b{name='y'})`",
    ),
    "grant-of-everything": (grant(namespaces=["*"], queues=["*"]), "name the namespaces"),
}
"""What is accepted, with what its author is warned of."""


def path_of(item: Object) -> str:
    """Return where objects of this kind are created."""
    within = "" if item["kind"] == "Grant" else "/namespaces/default"
    return f"/apis/{item['apiVersion']}{within}/{PLURALS[item['kind']]}"


def all_refused() -> Iterator[Refused]:
    """Return every row, with the name of its kind before its own."""
    for kind, rows in (
        ("cron", cron_rules.ROWS),
        ("producer", producers.ROWS),
        ("autoscaler", autoscalers.ROWS),
        ("node-group", NODE_GROUP_ROWS),
        ("grant", GRANT_ROWS),
    ):
        for row in rows:
            yield replace(row, id=f"{kind}-{row.id}")
