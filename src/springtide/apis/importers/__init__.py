"""Importers: conversion of objects of other projects that scale on time.

Each importer is a pure function from an object to a `Conversion`: of KEDA's cron triggers, of the jobs of
kubernetes-cronhpa-controller, and of the annotations of kube-downscaler. Each setting without an equivalent is reported
as a problem. The new objects pass `springtide check`.
"""

from springtide.apis.importers.conversion import Conversion, ConversionOptions, Tree
from springtide.apis.importers.cronhpa import convert_cronhpa
from springtide.apis.importers.downscaler import convert_downscaler
from springtide.apis.importers.keda import convert_keda
from springtide.apis.importers.manifests import (
    ConversionNotice,
    ImportResult,
    SiblingObjects,
    import_objects,
    is_importable,
)

__all__ = [
    "Conversion",
    "ConversionNotice",
    "ConversionOptions",
    "ImportResult",
    "SiblingObjects",
    "Tree",
    "convert_cronhpa",
    "convert_downscaler",
    "convert_keda",
    "import_objects",
    "is_importable",
]
