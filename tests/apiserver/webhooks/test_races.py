"""Concurrent requests with slow webhooks: the result equals that of some serial order."""

from __future__ import annotations

import asyncio
import base64
import json
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.objects import CONFIG_MAPS, START, key, make_server
from tests.apiserver.webhooks.webhook_server import MUTATING, USER, VALIDATING, webhook

from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.apiserver.webhooks import AdmissionWebhooks
from springtide.cluster.errors import AlreadyExists, ApiError, Forbidden, NotFound
from springtide.cluster.resources import Object
from springtide.cluster.transport import Patch, Write
from springtide.simulator.virtual_time import VirtualClock, run

LONGEST = 4
"""The validating webhook refuses a longer log."""

# A request: the object, the operation (create, append, delete), and the delay.
requests = st.lists(
    st.tuples(st.sampled_from("aab"), st.sampled_from(("create", "extend", "extend", "delete")), st.integers(0, 60)),
    min_size=2,
    max_size=9,
)


class SlowWebhooks:
    """Slow webhooks: one appends to the log of an object, the other validates it."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.agreed: list[tuple[Any, Any]] = []

    async def send(self, client: Object, body: bytes, timeout: int) -> bytes:
        request = json.loads(body)["request"]
        await asyncio.sleep(self._random.randrange(20))
        answer = self._logged(request) if client["url"].endswith("/log") else self._validated(request)
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return json.dumps(review | {"response": {"uid": request["uid"], **answer}}).encode()

    def _logged(self, request: Object) -> Object:
        if request["operation"] == "DELETE":
            return {"allowed": True}
        log = (request["oldObject"] or {"data": {}})["data"].get("log", "")
        value = log + request["object"]["data"]["said"]
        operation = {"op": "add", "path": "/data/log", "value": value}
        return {
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps([operation]).encode()).decode(),
        }

    def _validated(self, request: Object) -> Object:
        old, new = request["oldObject"], request["object"]
        allowed = len(old["data"]["log"]) % 2 == 0 if new is None else len(new["data"]["log"]) <= LONGEST
        if allowed:
            self.agreed.append((_seen(old), _seen(new)))
        return {"allowed": allowed, "status": {"code": 403, "reason": "Forbidden"}}


def _seen(item: Object | None, version: str | None = "") -> Any:
    """Return what identifies a state of an object; a reviewed object has the version that it replaces."""
    if item is None:
        return None
    metadata = item["metadata"]
    known = metadata.get("resourceVersion") if version == "" else version
    return metadata["uid"], known, json.dumps(item["data"], sort_keys=True)


def _verb(server: ApiServer, name: str, action: str, number: int) -> Any:
    said, write = chr(ord("A") + number), Write(f"writer-{number}")
    body = {"metadata": {"name": name}, "data": {"said": said}}
    change = Patch.merge({"data": {"said": said}})
    return {
        "create": lambda: server.create(CONFIG_MAPS, body, write, namespace="default"),
        "extend": lambda: server.patch(CONFIG_MAPS, key(name), change, write),
        "delete": lambda: server.delete(CONFIG_MAPS, key(name), write),
    }[action]


def _serially(requests_: list[tuple[str, str, int]], order: list[int]) -> list[str | None]:
    """Run the requests one after the other without a server: the log of each object after each request."""
    logs: dict[str, str] = {}
    after: list[str | None] = []
    for number in order:
        name, action, _ = requests_[number]
        said = chr(ord("A") + number)
        match action:
            case "create":
                assert name not in logs
                logs[name] = said
            case "extend":
                logs[name] += said
                assert len(logs[name]) <= LONGEST
            case _:
                assert len(logs.pop(name)) % 2 == 0
        after.append(logs.get(name))
    return after


@settings(max_examples=150, deadline=None)
@given(requests, st.integers(0, 2**16))
def test_concurrent_requests_are_serializable(requests_: list[tuple[str, str, int]], seed: int) -> None:
    hooks = SlowWebhooks(seed)
    written: list[CommittedWrite] = []
    outcomes: dict[int, ApiError | None] = {}

    async def main(clock: VirtualClock) -> None:
        server = make_server(now=clock.now)
        for resource, path in ((MUTATING, "log"), (VALIDATING, "judge")):
            hook = webhook({"url": f"https://hooks.example.com/{path}"})
            server.create(resource, {"metadata": {"name": "hooks"}, "webhooks": [hook]}, Write("admin"))
        server.observers.append(written.append)

        async def request(number: int, reviews: AdmissionWebhooks) -> None:
            name, action, at = requests_[number]
            await asyncio.sleep(at)
            try:
                await reviews.execute(_verb(server, name, action, number), USER)
            except ApiError as error:
                outcomes[number] = error
            else:
                outcomes[number] = None

        async with AdmissionWebhooks(server, hooks.send) as reviews:
            await asyncio.gather(*(request(number, reviews) for number in range(len(requests_))))

    run(main, start=START)

    order = [int(each.write.manager.removeprefix("writer-")) for each in written]
    # Each acknowledged request took effect exactly once, and no other did.
    assert sorted(order) == sorted(number for number, error in outcomes.items() if error is None)
    # The result is that of this serial order.
    logs = [None if each.new is None else each.new["data"]["log"] for each in written]
    assert logs == _serially(requests_, order)
    # What took effect is exactly what the webhooks allowed.
    for each in written:
        replaced = None if each.old is None else each.old["metadata"]["resourceVersion"]
        assert (_seen(each.old), _seen(each.new, replaced)) in hooks.agreed
    # The other requests are too few to exhaust the retries.
    refused = {type(error) for error in outcomes.values() if error is not None}
    assert refused <= {NotFound, AlreadyExists, Forbidden}
