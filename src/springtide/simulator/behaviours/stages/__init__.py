"""The lives of nodes and pods as data: `node.yaml`, `pod.yaml`, and the small engine that plays them."""

from __future__ import annotations

from springtide.simulator.behaviours.stages.engine import Due, Stage, Stages, compile_stage, load_stages

__all__ = ["Due", "Stage", "Stages", "compile_stage", "load_stages"]
