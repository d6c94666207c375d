"""YAML manifests: parsed with positions and Kubernetes' scalar rules, and edited without losing comments."""

from springtide.apis.yaml.document import (
    Document,
    PlacedProblem,
    Position,
    UnreadableDocument,
    document_without_text,
    read,
)
from springtide.apis.yaml.dump import dump
from springtide.apis.yaml.repair import Repair, read_repaired, repair
from springtide.apis.yaml.rewrite import comments, rewrite, same

__all__ = [
    "Document",
    "PlacedProblem",
    "Position",
    "Repair",
    "UnreadableDocument",
    "comments",
    "document_without_text",
    "dump",
    "read",
    "read_repaired",
    "repair",
    "rewrite",
    "same",
]
