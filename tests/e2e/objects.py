"""Objects of a real cluster, as the tests write and read them: through kubectl, as people do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from tests.e2e.control_plane import ControlPlane
from tests.e2e.waiting import eventually

from springtide.apis.crds import Flavour, all_crds, crd_files
from springtide.cluster.resources import Object


def install_crds(plane: ControlPlane, flavour: Flavour = Flavour.EXTENDED) -> None:
    """Apply our CRDs, and wait until they are served."""
    text = "---\n".join(crd_files(flavour).values())
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", "-", text=text)
    wait_served(plane, flavour)


def wait_served(plane: ControlPlane, flavour: Flavour) -> None:
    """Wait until all versions are served that our CRDs say are; a server begins anew with a kind that has changed."""
    for definition in all_crds(flavour):
        for path, served in paths_of(definition).items():
            if served:
                eventually(f"{path} is served", partial(plane.answers, path))


def restore_crds(plane: ControlPlane) -> None:
    """Bring our CRDs back to what is installed, whatever others have added to them."""
    plane.kubectl("replace", "-f", "-", text="---\n".join(crd_files(Flavour.EXTENDED).values()))
    wait_served(plane, Flavour.EXTENDED)


def paths_of(definition: Object) -> dict[str, bool]:
    """Return the paths of all versions of a custom kind, each with whether it is served."""
    spec = definition["spec"]
    plural = spec["names"]["plural"]
    return {f"/apis/{spec['group']}/{one['name']}/{plural}": one["served"] for one in spec["versions"]}


def write(plane: ControlPlane, *objects: Object) -> None:
    """Apply objects, whatever others have written into them."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)


def read(plane: ControlPlane, kind: str, name: str, namespace: str = "default") -> Object | None:
    """Read an object, or nothing where it is not there."""
    reported = plane.kubectl("get", kind, name, "--namespace", namespace, "--ignore-not-found", "--output=json").stdout
    return json.loads(reported) if reported else None


def read_all(plane: ControlPlane, kind: str, *arguments: str) -> list[Object]:
    """Read all objects of a kind; the arguments say which."""
    items: list[Object] = json.loads(plane.kubectl("get", kind, *arguments, "--output=json").stdout)["items"]
    return items


def remove(plane: ControlPlane, kind: str, names: Iterable[str]) -> None:
    """Delete objects if they exist, without waiting for them to disappear."""
    plane.kubectl("delete", kind, *names, "--ignore-not-found", "--wait=false")


def calendar(name: str, *dates: str, zone: str = "UTC") -> Object:
    """Write a calendar of these days."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": name},
        "spec": {"timeZone": zone, "dates": list(dates)},
    }


def told_dates(item: Object) -> list[str]:
    """Return the days that the status of a calendar tells of."""
    return (item.get("status") or {}).get("nextDates") or []


def conditions(item: Object | None) -> dict[str, Any]:
    """Return the conditions of an object by their types."""
    status = (item or {}).get("status") or {}
    return {entry["type"]: entry for entry in status.get("conditions") or ()}
