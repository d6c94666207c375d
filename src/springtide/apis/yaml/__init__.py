"""Manifests as text: read with positions and Kubernetes' scalar rules, changed without losing comments."""

from springtide.apis.yaml.document import Document, PlacedProblem, Position, Unreadable, document_without_text
from springtide.apis.yaml.dump import dump
from springtide.apis.yaml.matching import same
from springtide.apis.yaml.reader import read
from springtide.apis.yaml.repair import Repair, read_through, repair
from springtide.apis.yaml.rewrite import comments, rewrite

__all__ = [
    "Document",
    "PlacedProblem",
    "Position",
    "Repair",
    "Unreadable",
    "comments",
    "document_without_text",
    "dump",
    "read",
    "read_through",
    "repair",
    "rewrite",
    "same",
]
