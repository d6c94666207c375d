"""What anybody may ask without a token: whether the server is well, and which version it is."""

from __future__ import annotations

import platform

from springtide.simulator.api.builtin import kubernetes_version
from springtide.simulator.http.answer import Answer, answered
from springtide.simulator.http.request import Request

_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "storage", "watches")


def open_answer(request: Request, parts: list[str]) -> Answer | None:
    """Answer a request that needs no token; None for any other."""
    if parts == ["version"]:
        return answered(_version())
    if parts and parts[0] in _HEALTH and (len(parts) == 1 or (len(parts) == 2 and parts[1] in _CHECKS)):
        return Answer(_health(request, parts).encode(), media="text/plain; charset=utf-8")
    return None


def _health(request: Request, parts: list[str]) -> str:
    if len(parts) > 1 or "verbose" not in request.query:
        return "ok"
    return "".join(f"[+]{check} ok\n" for check in _CHECKS) + f"{parts[0]} check passed\n"


def _version() -> dict[str, str]:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{version}+springtide",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "cpython",
        "platform": f"{platform.system().lower()}/{_MACHINES.get(platform.machine(), platform.machine())}",
    }


_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
