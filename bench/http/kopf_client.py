"""The same work with kopf: `python -m bench.http.kopf_client KUBECONFIG COUNT`; its handler does nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import kopf
import yaml
from bench.children import memory, peak_memory

seen = 0


def main(kubeconfig: str, count: int) -> None:
    """Handle every pod once, and print how long it took."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    stopping = asyncio.Event()

    @kopf.on.login()
    def login(**_: Any) -> kopf.ConnectionInfo:
        data = base64.b64decode(cluster["certificate-authority-data"])
        return kopf.ConnectionInfo(server=cluster["server"], ca_data=base64.b64encode(data), token=user["token"])

    @kopf.on.startup()
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True

    @kopf.on.event("v1", "pods")
    async def look(**_: Any) -> None:
        global seen
        seen += 1
        if seen >= count:
            stopping.set()

    before = memory()
    begin = time.perf_counter()
    asyncio.run(kopf.operator(standalone=True, clusterwide=True, stop_flag=stopping))
    seconds = time.perf_counter() - begin
    peak = peak_memory()
    print(json.dumps({"seconds": seconds, "memory": memory() - before, "peak": peak - before}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
