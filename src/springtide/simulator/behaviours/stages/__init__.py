"""The lives of nodes and pods as data: `node.yaml`, `pod.yaml`, and the small engine that plays them."""

from __future__ import annotations

from springtide.simulator.behaviours.stages.engine import DueStage, Stage, Stages, compile_stage, load_stages

__all__ = ["DueStage", "Stage", "Stages", "compile_stage", "load_stages"]
