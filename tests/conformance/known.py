"""Where the embedded API server differs from a real one, and why: everything else is the same.

An entry that is no longer true fails a test, and so does a difference that is not here. The list is part of
`docs/embedded.md`: `python -m tests.conformance.known` prints it, and a test compares.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.conformance.answers import ABSENT, Difference
from tests.conformance.case import all_cases


def _anything(difference: Difference) -> bool:
    return True


def _left_out(difference: Difference) -> bool:
    """Tell whether only an empty value is missing."""
    return difference.played == ABSENT and _empty(difference.recorded)


def _empty(value: Any) -> bool:
    return all(map(_empty, value.values())) if isinstance(value, dict) else value in (None, 0, "", [])


def _in_other_words(difference: Difference) -> bool:
    """Tell whether both servers say something, and not the same."""
    return isinstance(difference.recorded, str) and isinstance(difference.played, str) and difference.played != ABSENT


@dataclass(frozen=True, slots=True)
class Known:
    """One difference."""

    what: str
    """A sentence for the documentation: what the embedded server does instead."""
    places: tuple[tuple[str, str], ...]
    """Where it shows: the case, and the field of its answers; `*` stands for anything in both."""
    when: Callable[[Difference], bool] = _anything

    def covers(self, case: str, difference: Difference) -> bool:
        """Tell whether a difference is this one."""
        return self.when(difference) and any(
            fnmatchcase(case, literal(where)) and fnmatchcase(difference.field, literal(field))
            for where, field in self.places
        )


def literal(pattern: str) -> str:
    """Take the brackets in the name of a case as they are."""
    return pattern.replace("[", "[[]")


def _at(field: str, *cases: str) -> tuple[tuple[str, str], ...]:
    """Name the same field of several cases."""
    return tuple((case, field) for case in cases)


_WORDS = "*/message"
_OUTCOME = "*/status"
_BORN = "objects/comes_with_its_defaults_and_stays_as_it_came"

KNOWN: tuple[Known, ...] = (
    Known("Empty values are left out, where a real server writes some of them.", (("*", "*"),), _left_out),
    Known(
        "A Service gets no cluster IP and no node port, since there is no network.",
        tuple(("*", f"*/{name}") for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodePort")),
    ),
    Known(
        "The response to a review, which is not stored, has no managed fields.",
        (("discovery/what_the_admin_may", "*/managedFields"),),
    ),
    Known(
        "Some error messages are worded differently; status, reason and field are the same.",
        _at(
            _WORDS,
            "applying/is_refused*",
            "custom/is_refused_with_*",
            "definitions/schema[broken pattern]",
            "definitions/schema[rule of an unknown field]",
            "definitions/is_refused_for_its[one version twice]",
            "deleting/with_options_of*",
            "limits/quota_is_refused[no quantity]",
            "listing/is_refused_with*",
            "metadata/labels[number]",
            "metadata/of_a_wrong_type*",
            "objects/a_config_map_is_refused*",
            "objects/a_deployment_is_refused[replicas in words]",
            "objects/resources_of_a_container[no quantity]",
            "patches/of_the_spec_of_a_pod_only_a_little_may_change*",
            "requests/creation_from*",
            "requests/json_that_is_too_deep",
            "strictness/unknown_fields_of_a*",
            "subresources/scale_patch[of another name]",
            "subresources/scale_replaced_with_too_little",
            "subresources/eviction_with[another kind]",
            "updating/is_refused_with*",
        ),
        _in_other_words,
    ),
    Known(
        "An error lists each cause once, where a real server repeats some; that of a definition may list fewer or more "
        "causes, or name the field by another of its paths.",
        (
            *_at(
                "1/body/details/causes*",
                "definitions/schema*",
                "definitions/is_refused_for_its*",
                "objects/an_autoscaler_is_refused[metric of no type]",
                "patches/a_merge_patch[changes the uid]",
            ),
            *_at("1/body/message", "definitions/schema*", "definitions/is_refused_for_its*"),
            *_at("2/body/details/causes", "deleting/allows_no_new_finalizers", "metadata/deletion_cannot_be_written"),
            *_at("3/body/*", "updating/labels_change_but_not_names_in_references"),
        ),
    ),
    Known(
        "A patch with a value of a wrong type is refused with the name of the field, where a real server shows the "
        "whole patch; one with another kind or version is refused with 400, not 422.",
        (
            *_at(_OUTCOME, "patches/a_merge_patch[changes the *]", "custom/is_refused_with_another_type"),
            *_at(
                "1/body/*",
                "patches/a_merge_patch[sets a wrong type]",
                "patches/a_strategic_patch[has a list that is none]",
                "subresources/scale_patch[in words]",
                "updating/status_is_judged_too[words for a number]",
            ),
            *_at("*/warnings", "custom/is_refused_with_another_type", "subresources/scale_patch[of an unknown field]"),
        ),
    ),
    Known(
        "Where a real server answers invalid requests with 500, which clients retry, the status is that of a client "
        "error: versions that are not numbers, invalid targets of bindings, an apply that does not match the structure "
        "of its kind, invalid directives of a strategic patch, and the eviction of a pod with two budgets.",
        _at(
            _OUTCOME,
            "applying/is_refused[an unknown field]",
            "applying/is_refused[a wrong type]",
            "applying/numbers_of_yaml_are_not_strings",
            "applying/two_containers_of_one_name_are_refused",
            "custom/is_not_applied_with*",
            "listing/get_of_one_at_any_version",
            "objects/a_version_cannot_be_given_at_birth",
            "patches/a_merge_patch[names a version that is no number]",
            "patches/a_strategic_patch[knows no such directive]",
            "patches/a_strategic_patch[needs the name of a container]",
            "strictness/unknown_fields_of_an_apply",
            "springtide/a_group_of_nodes_without_replicas_scales",
            "subresources/scale_of_a_custom_kind_without_a_number",
            "subresources/binding_with*",
            "subresources/eviction_under_two_budgets",
            "updating/is_refused_with[a version that is no number]",
            "watching/is_refused_with[a version in words]",
        ),
    ),
    Known(
        "There are no endpoints, no runtime classes, no bindings apart from pods, and no events in `events.k8s.io`.",
        (
            *_at(
                _OUTCOME,
                "discovery/the_resources_of[events.k8s.io/v1]",
                f"{_BORN}[endpoints]",
                "objects/comes_outside_of_namespaces[runtime class]",
                "objects/an_event_*",
                "subresources/binding_under_its_old_path",
            ),
            *_at(
                "*/body/resources",
                "discovery/a_resource_of_the_core[bindings]",
                "discovery/a_resource_of_the_core[endpoints]",
            ),
        ),
    ),
    Known(
        "Volumes and claims get no protection finalizers, and a DaemonSet has no annotation with its template "
        "generation.",
        (
            *_at("*/finalizers", f"{_BORN}[claim]", "objects/comes_outside_of_namespaces[persistent volume]"),
            ("objects/comes_outside_of_namespaces[persistent volume]", "*/lastPhaseTransitionTime"),
            (f"{_BORN}[daemon set]", "*/annotations"),
            (f"{_BORN}[daemon set]", "*/managedFields/*"),
        ),
    ),
    Known(
        "CEL rules have no format and semantic version libraries, their cost is not estimated, and a violation that "
        "ratcheting tolerates causes no warning.",
        (
            *_at(
                _OUTCOME,
                "rules/with_a_library_of[labels]",
                "rules/with_a_library_of[versions]",
                "definitions/schema[rule that costs too much]",
            ),
            ("rules/that_come_later_spare_what_does_not_change", "*/warnings"),
        ),
    ),
    Known(
        "A schema default of `null` stays in the definition.",
        (("definitions/schema[null as default]", "*/default"),),
    ),
)

HEADING = "## Differences from a real API server"


def section() -> str:
    """Write what is known for the documentation."""
    count = len(all_cases())
    bullets = [textwrap.fill(f"- {known.what}", 120, subsequent_indent="  ") for known in KNOWN]
    return (
        f"{HEADING}\n\n"
        f"{count} cases are played on the embedded server and on a kube-apiserver (`tests/conformance`).\n"
        "The responses are the same, except for these differences:\n\n" + "\n".join(bullets) + "\n"
    )


if __name__ == "__main__":
    sys.stdout.write(section())
