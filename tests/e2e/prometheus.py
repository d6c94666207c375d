"""A real Prometheus on loopback that scrapes one address every second."""

from __future__ import annotations

import re
import shutil
import urllib.request
from pathlib import Path

from tests.e2e.processes import Program, free_ports

_CONFIGURATION = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: springtide
    static_configs: [{{targets: ["{target}"]}}]
"""
_QUERIES = r'^prometheus_http_requests_total\{code="200",handler="/api/v1/query"\} (\S+)$'


class Prometheus:
    """A program that can be started, and where it is asked."""

    def __init__(self, program: str, folder: Path, target: str) -> None:
        """Prepare one that scrapes `target`."""
        folder.mkdir()
        configuration = folder / "prometheus.yml"
        configuration.write_text(_CONFIGURATION.format(target=target), encoding="utf-8")
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.program = Program(
            "prometheus",
            [
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            log=folder / "prometheus.log",
        )

    def answered(self) -> int:
        """Return how many queries it has answered, by its own count."""
        # Loopback, whatever proxies the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/metrics", timeout=5) as page:
            counts = re.findall(_QUERIES, page.read().decode(), re.MULTILINE)
        return sum(int(float(count)) for count in counts)


def find() -> str | None:
    """Return the path of the program, if this machine has it."""
    return shutil.which("prometheus")
