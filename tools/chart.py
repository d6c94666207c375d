"""Write the parts of the chart that follow from the code: who may do what, and what webhooks are asked about.

    python tools/chart.py

Each file under `charts/springtide/files/roles` holds the rules of one bearer of rights, for the whole cluster and for
the namespace of the release. The templates make roles and bindings of them. `scaling.yaml` names the controllers that
set the scale of what users name, for which rights are given group by group in the values. `webhooks.yaml` holds the
configurations of the webhooks, which the templates direct at the Service of the release. The same code gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from springtide.apis.yaml import dump
from springtide.cluster.admission import PERMISSIONS as WEBHOOKS
from springtide.cluster.admission import ServiceTarget, webhook_configurations
from springtide.cluster.controller import Permission
from springtide.cluster.rbac import MANAGER_PERMISSIONS, rules_of
from springtide.controllers import CONTROLLERS
from springtide.metrics.external import PERMISSIONS as EXTERNAL_METRICS

FILES = Path(__file__).parent.parent / "charts" / "springtide" / "files"
_HEADER = "# Written by `make chart` from what the code declares. Do not edit.\n"
_SOMEWHERE = ServiceTarget("NAMESPACE", "NAME")
"""Stands for the Service of a release; only the path of each webhook is taken from it."""


def bearers() -> Mapping[str, tuple[Permission, ...]]:
    """Name everybody who has rights, by the path of his file."""
    return {
        "roles/manager.yaml": MANAGER_PERMISSIONS,
        "roles/webhooks.yaml": WEBHOOKS,
        "roles/external-metrics.yaml": EXTERNAL_METRICS,
        **{f"roles/controllers/{kind.name}.yaml": kind.permissions for kind in CONTROLLERS},
    }


def chart_files() -> dict[str, str]:
    """Write every file, by its path."""
    data: dict[str, Any] = {path: rules_of(permissions).as_data() for path, permissions in bearers().items()}
    data["scaling.yaml"] = {"controllers": [kind.name for kind in CONTROLLERS if kind.scales]}
    data["webhooks.yaml"] = {"configurations": list(webhook_configurations(_SOMEWHERE))}
    return {path: _HEADER + dump(part) for path, part in data.items()}


def main() -> None:
    """Write the files, and remove those of whoever is no more."""
    written = chart_files()
    for former in FILES.rglob("*.yaml"):
        if former.relative_to(FILES).as_posix() not in written:
            former.unlink()
    for path, text in written.items():
        target = FILES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"{len(written)} files written to {FILES}")


if __name__ == "__main__":
    main()
