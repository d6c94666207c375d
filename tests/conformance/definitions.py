"""Definitions that come and change while a case is played: a server takes a moment to serve what it has accepted."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.objects import definition
from tests.conformance.play import JSON_PATCH, Object, Play

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def define(play: Play, schema: Object, *, own: bool = False, **more: Any) -> str:
    """Have `Widget` defined with one version, and served; gives the short path of its objects.

    Plays share a definition, unless one wants its own because it changes or deletes it.
    """
    wanted = json.dumps([schema, more])
    if own:
        return serve(play, definition(play, schema, **more))
    if wanted in play.shared:
        play.group = play.shared[wanted]
        return _path(definition(play, schema, **more))
    path = serve(play, definition(play, schema, **more), stays=True)
    play.shared[wanted] = play.group
    return path


def serve(play: Play, definition: Object, *, stays: bool = False) -> str:
    """Create a definition, and wait until all its versions are served; gives the path of the first one's objects."""
    play.prepare(DEFINITIONS, definition, stays=stays)
    spec = definition["spec"]
    for each in spec["versions"]:
        if each["served"]:
            path = f"/apis/{spec['group']}/{each['name']}/{spec['names']['plural']}"
            play.until(lambda answer: answer.status == 200, path)
    return _path(definition)


def redefine(play: Play, patch: list[Object], probe: str, body: Object, status: int) -> None:
    """Change the definition of `Widget`, and wait until a trial creation has the status that the change brings."""
    path = f"{DEFINITIONS}/widgets.{play.group}"
    answer = play.quietly("PATCH", path, patch, {"Content-Type": JSON_PATCH})
    assert answer.status == 200, answer.body
    play.until(lambda answer: answer.status == status, probe, body, method="POST", dryRun="All")


def _path(definition: Object) -> str:
    spec = definition["spec"]
    path = f"{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
    return path if spec["scope"] == "Namespaced" else f"/apis/{path}"
