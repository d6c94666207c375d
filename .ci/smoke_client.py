"""Applies the objects of an example under new names over HTTP, and waits until controllers have acted on them."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import yaml

from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.http.discovery import discover
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Write

PATIENCE = 180.0


def renamed(item: Any) -> Any:
    """Copy an object under a new name; its labels and selectors change with the name."""
    text = yaml.safe_dump(item)
    return yaml.safe_load(text.replace(item["metadata"]["name"], item["metadata"]["name"] + "-smoke"))


def effect(item: Object) -> str:
    """Describe what a controller has done with an object; empty where nothing yet."""
    status = item.get("status") or {}
    if item["kind"] == "Deployment":
        # Whether the pods run depends on the free capacity that the other examples leave.
        created = status.get("updatedReplicas", 0)
        return f"{created} pods are created" if created == item["spec"]["replicas"] else ""
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            return f"Ready: {condition.get('message') or condition.get('reason')}"
    return ""


async def wait_for_effect(transport: HttpTransport, resource: Resource, key: Key) -> None:
    """Wait until a controller has acted on an object."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := effect(await transport.get(resource, key))):
        if time.monotonic() > deadline:
            raise SystemExit(f"smoke: {resource.kind} {key} shows no effect after {PATIENCE:.0f} s")
        await asyncio.sleep(0.2)
    print(f"smoke: {resource.kind} {key}: {seen}")


async def main(kubeconfig: str, example: str) -> None:
    """Apply all objects, then wait for each."""
    async with HttpTransport(load_kubeconfig(Path(kubeconfig)), random=Random(0)) as transport:
        discovery = await discover(transport)
        applied = []
        for item in map(renamed, yaml.safe_load_all(Path(example).read_text())):
            resource = discovery.resource_of(item["apiVersion"], item["kind"])
            assert resource is not None, f"the server does not know {item['kind']}"
            key = Key("default" if resource.namespaced else "", item["metadata"]["name"])
            await transport.patch(resource, key, Patch.apply(item), Write("smoke"))
            applied.append((resource, key))
        for resource, key in applied:
            await wait_for_effect(transport, resource, key)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
