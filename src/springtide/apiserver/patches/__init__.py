"""The four kinds of patch, and who owns which field afterwards.

All of it is pure: trees of JSON go in and come out, nothing that goes in is changed, and what a patch does not touch is
shared between before and after, so that whoever compares the two later can stop where they are the same object.
"""

from springtide.apiserver.patches import managed
from springtide.apiserver.patches.json_patches import json_patch, merge_patch
from springtide.apiserver.patches.strategic import strategic_patch

__all__ = ["json_patch", "managed", "merge_patch", "strategic_patch"]
