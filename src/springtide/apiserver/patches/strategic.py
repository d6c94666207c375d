"""Strategic merge patch: a merge patch that knows the lists of built-in kinds.

Maps are merged and null deletes, as in a merge patch. Lists with a patch strategy are merged as well, by the key of
their entries or as sets of scalars; other lists are replaced. Directives in the patch say the rest:

    $patch: replace                       replace this map; in a list: replace the list with the other entries
    $patch: delete                        delete this map; in a list: delete the entry with this key
    $retainKeys: [names]                  drop the other fields of this map
    $deleteFromPrimitiveList/f: [values]  remove these values from the set f
    $setElementOrder/f: [entries]         sort the list f like this

Directives and nulls never reach the result. A malformed patch is a bad request, also where a kube-apiserver answers
with an internal error.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from springtide.apiserver.kinds import ANYTHING, StructureNode
from springtide.apiserver.patches.json_patches import equal_json
from springtide.cluster.errors import BadRequest, Invalid, StatusDetails


def merged_order(
    items: Sequence[tuple[Hashable, Any]], patch_keys: Sequence[Hashable], server: Sequence[Hashable]
) -> list[Any]:
    """Return the items, each with its key, in their final order.

    Entries of the patch keep the order of the patch, all others that of the server. An entry of the server stays before
    the entries that it stood before.
    """
    patch_positions = _positions(patch_keys)
    server_positions = _positions(server)
    from_patch = sorted(
        (item for item in items if item[0] in patch_positions), key=lambda item: patch_positions[item[0]]
    )
    from_server = [item for item in items if item[0] not in patch_positions]
    result: list[Any] = []
    for key, item in from_patch:
        if key in server_positions:
            while (
                from_server
                and from_server[0][0] in server_positions
                and server_positions[from_server[0][0]] < server_positions[key]
            ):
                result.append(from_server.pop(0)[1])
        result.append(item)
    return result + [item for _, item in from_server]


def follows(part: Sequence[Hashable], whole: Sequence[Hashable]) -> bool:
    """Whether the keys of one sequence occur in another in the same order. Any order follows an empty one."""
    rest = iter(whole)
    return not whole or all(key in rest for key in part)


def _positions(keys: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the first position of each key."""
    return {key: place for place, key in reversed(list(enumerate(keys)))}


_MARK = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"

_ABSENT: Any = object()


def strategic_patch(target: Any, patch: Any, node: StructureNode) -> Any:
    """Return the patched target: the target itself if the patch changes nothing."""
    if patch is None:
        return target
    if not isinstance(patch, dict):
        raise BadRequest("a strategic merge patch is an object")
    return _merge_maps(node, target, patch)


def _merge_maps(node: StructureNode, original: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    if _MARK in patch:
        return _apply_directive(patch)
    merged = dict(original)
    if _RETAIN in patch:
        _retain(merged, patch)
    for name, value in patch.items():
        if name == _RETAIN or name.startswith(_DELETE):
            continue
        if name.startswith(_ORDER):
            name = name.removeprefix(_ORDER)
            _put(merged, name, _ordered(node.child(name), merged.get(name, _ABSENT), patch.get(name, _ABSENT), value))
        elif _ORDER + name not in patch:
            _put(merged, name, _merge(node.child(name), merged.get(name, _ABSENT), value))
    for name, values in patch.items():
        if name.startswith(_DELETE):
            name = name.removeprefix(_DELETE)
            _put(merged, name, _without_values(merged.get(name, _ABSENT), values))
    same = len(merged) == len(original) and all(value is original.get(name) for name, value in merged.items())
    return original if same else merged


def _put(merged: dict[str, Any], name: str, value: Any) -> None:
    if value is _ABSENT:
        merged.pop(name, None)
    else:
        merged[name] = value


def _apply_directive(patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a `$patch` directive to a map."""
    if patch[_MARK] == "replace":
        return {name: _clean(value) for name, value in patch.items() if name != _MARK and value is not None}
    if patch[_MARK] == "delete":
        return {}
    raise BadRequest(f"unknown patch type: {_printed(patch[_MARK])} in map: {_printed(patch)}")


def _retain(merged: dict[str, Any], patch: dict[str, Any]) -> None:
    """Drop the fields that `$retainKeys` does not list. It must list all fields that the patch sets."""
    retained = patch[_RETAIN]
    written = [name for name, value in patch.items() if value is not None and not name.startswith((_DELETE, _ORDER))]
    if not isinstance(retained, list) or any(name not in retained for name in written if name != _RETAIN):
        raise BadRequest("invalid patch format of retainKeys")
    for name in [name for name in merged if name not in retained]:
        del merged[name]


def _merge(node: StructureNode, original: Any, value: Any) -> Any:
    """Return the value at one path after the patch; `_ABSENT` if there is none."""
    if value is None:
        return _ABSENT
    if isinstance(value, dict) and isinstance(original, dict) and not node.patch_replace:
        return _merge_maps(node, original, value)
    if _is_directive(value):
        return _ABSENT
    if isinstance(original, list) and isinstance(value, list) and node.patch_merge:
        return _merge_lists(node, original, value)
    after = _clean(value)
    return original if equal_json(original, after) else after


def _merge_lists(node: StructureNode, original: list[Any], patch: list[Any]) -> list[Any]:
    if not original and not patch:
        return original
    if not _holds_maps(original, patch):
        keys = [_scalar(value) for value in (*original, *patch)]
        first = dict(zip(reversed(keys), reversed([*original, *patch]), strict=True))
        merged = [(key, first[key]) for key in dict.fromkeys(keys)]
        return _unless_same(original, merged_order(merged, keys[len(original) :], keys[: len(original)]))
    if not node.patch_key:
        raise BadRequest("cannot merge lists without merge key")
    return _merge_entries(node, original, patch)


def _merge_entries(node: StructureNode, original: list[Any], patch: list[Any]) -> list[Any]:
    key = node.patch_key
    entries = [entry for entry in patch if _MARK not in entry]
    directed = [entry for entry in patch if _MARK in entry]
    for entry in directed:
        if entry[_MARK] == "delete":
            deleted = _key(entry, key)
            original = [kept for kept in original if key not in kept or _scalar(kept[key]) != deleted]
        elif entry[_MARK] == "merge":
            raise BadRequest("merging lists cannot yet be specified in the patch")
        elif entry[_MARK] != "replace":
            raise BadRequest(f"unknown patch type: {_printed(entry[_MARK])} in map: {_printed(entry)}")
    if any(entry[_MARK] == "replace" for entry in directed):
        return [_clean(entry) for entry in entries]
    merged = [(_key(entry, key), entry) for entry in original]
    places: dict[Any, int] = {}
    for place, (identity, _) in enumerate(merged):
        places.setdefault(identity, place)
    for entry in entries:
        identity = _key(entry, key)
        place = places.setdefault(identity, len(merged))
        if place < len(merged):
            merged[place] = (identity, _merge_maps(node.items or ANYTHING, merged[place][1], entry))
        else:
            merged.append((identity, _clean(entry)))
    patch_keys = [_key(entry, key) for entry in entries]
    return _unless_same(original, merged_order(merged, patch_keys, [_key(entry, key) for entry in original]))


def _ordered(node: StructureNode, original: Any, patch: Any, order: Any) -> Any:
    """Merge a list, then sort it as the patch asks for."""
    if not isinstance(order, list):
        raise BadRequest("invalid patch format of setElementOrder list")
    before = [] if original is _ABSENT else original
    change = [] if patch is _ABSENT else patch
    if not isinstance(before, list) or not isinstance(change, list):
        raise BadRequest("a list that $setElementOrder names is not a list")
    if original is _ABSENT and patch is _ABSENT:
        return _ABSENT
    _holds_maps(before, change)

    def identity(item: Any) -> Any:
        return _key(item, node.patch_key) if node.patch_key else _scalar(item)

    patch_keys = [identity(item) for item in order]
    written = [identity(item) for item in change if not _is_directive(item)]
    if not follows(written, patch_keys):
        raise BadRequest(
            f"The order in patch list:\n{_printed(change)}\n doesn't match $setElementOrder list:\n{_printed(order)}\n"
        )
    merged = before
    if patch is not _ABSENT:
        merged = _clean(change) if original is _ABSENT else _merge(node, before, change)
    items = [(identity(item), item) for item in merged]
    return _unless_same(before, merged_order(items, patch_keys, [identity(item) for item in before]))


def _without_values(original: Any, values: Any) -> Any:
    """Remove values from a set of scalars."""
    if not isinstance(values, list):
        raise BadRequest("invalid patch format of primitive list")
    if not isinstance(original, list):
        return original
    unwanted = [_scalar(value) for value in values]
    return _unless_same(original, [value for value in original if _scalar(value) not in unwanted])


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether these lists contain maps. All entries must be of one type."""
    types = list(dict.fromkeys(type(item) for items in lists for item in items))
    if types[:1] == [list]:
        raise Invalid("the server rejected our request due to an error in our request", about=StatusDetails())
    if len(types) > 1:
        raise BadRequest(f"list element types are not identical: {_printed(list(lists))}")
    return types[:1] == [dict]


def _key(entry: Any, key: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        raise BadRequest(f"map: {_printed(entry)} does not contain declared merge key: {key}")
    return _scalar(entry[key])


def _scalar(value: Any) -> Any:
    """Return a key that differs for values of different types: 1, "1" and true are three keys."""
    if isinstance(value, dict | list):
        raise BadRequest(f"expected a scalar, but received {_printed(value)}")
    return (type(value).__name__, value)


def _clean(value: Any) -> Any:
    """Return the value of a patch without nulls and directives."""
    if isinstance(value, dict):
        return {
            name: _clean(part)
            for name, part in value.items()
            if part is not None and not name.startswith("$") and not _is_directive(part)
        }
    if isinstance(value, list):
        return [_clean(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _MARK in value


def _unless_same(before: list[Any], after: list[Any]) -> list[Any]:
    same = len(before) == len(after) and all(old is new for old, new in zip(before, after, strict=True))
    return before if same else after


def _printed(value: Any) -> str:
    """Format a value as the messages of kube-apiserver do."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_printed(part)}" for name, part in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_printed, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "<nil>", True: "true", False: "false"}[value]
    return str(value)
