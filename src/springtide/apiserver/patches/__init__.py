"""Merge patches, JSON patches, strategic merge patches, and server-side apply with managed fields.

All functions are pure: they return new JSON trees and share with the given ones what has not changed, so that later
comparisons can stop at identical objects.
"""

from springtide.apiserver.patches import managed
from springtide.apiserver.patches.json_patches import json_patch, merge_patch
from springtide.apiserver.patches.strategic import strategic_patch

__all__ = ["json_patch", "managed", "merge_patch", "strategic_patch"]
