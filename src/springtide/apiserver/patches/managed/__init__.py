"""Who owns which field of an object: `metadata.managedFields`, kept as the API server keeps it.

    elements    one step of a path, in the spelling of `fieldsV1`
    fieldsets   sets of paths: the very trees that `fieldsV1` writes
    shape       which values are owned in parts, and in which
    paths       the paths of a value
    comparison  the paths that differ between two objects
    merging     an applied configuration laid over an object
    removal     an object without some of its paths
    fitting     configurations that do not fit the structure of their kind
    conflicts   what others own and an apply would change
    entries     the list in `metadata.managedFields`
    applying    server-side apply
    updating    what creates, updates and other patches do to owners

Structure comes from `springtide.simulator.api.structure`; all entries are read by the structure that is in force now,
whatever version they were written in.
"""

from springtide.apiserver.patches.managed.entries import stored as owners_of
from springtide.apiserver.patches.managed.ownership import after_update, with_owners
from springtide.apiserver.patches.managed.schema_check import conforms
from springtide.apiserver.patches.managed.server_side_apply import apply

__all__ = ["after_update", "apply", "conforms", "owners_of", "with_owners"]
