"""The lifecycles of nodes and pods as data: `node.yaml`, `pod.yaml`, and the engine that applies them."""

from __future__ import annotations

from springtide.simulator.behaviours.stages.engine import DueStage, Stage, Stages, compile_stage, load_stages

__all__ = ["DueStage", "Stage", "Stages", "compile_stage", "load_stages"]
