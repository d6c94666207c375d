"""Field ownership: `metadata.managedFields`, kept as a kube-apiserver keeps it.

    path_elements      the elements of paths in `fieldsV1`, and granular values
    fieldsets          sets of paths, and the paths of a value
    entries            the entries of `metadata.managedFields`
    ownership          the entries after creates, updates and patches other than apply
    schema_check       conformance of applied configurations to their schema
    server_side_apply  server-side apply

All entries are read by the structure of the current schema, whatever version they were written in.
"""

from springtide.apiserver.patches.managed.entries import stored as owners_of
from springtide.apiserver.patches.managed.ownership import after_update, with_owners
from springtide.apiserver.patches.managed.schema_check import conforms
from springtide.apiserver.patches.managed.server_side_apply import apply

__all__ = ["after_update", "apply", "conforms", "owners_of", "with_owners"]
