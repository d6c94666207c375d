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
    Known("Values that are empty are left out, where a real server writes some of them.", (("*", "*"),), _left_out),
    Known(
        "A Service gets no address of its own and no port of the nodes: there is no network behind it.",
        tuple(("*", f"*/{name}") for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodePort")),
    ),
    Known(
        "The answer to a review, which nobody can read again, has no managed fields.",
        (("discovery/what_the_admin_may", "*/managedFields"),),
    ),
    Known(
        "Some refusals are in other words; their status, their reason and the field that they name are the same.",
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
        "A refusal tells each cause once, where a real server repeats some; that of a definition may name fewer or "
        "more causes, or the field by another of its paths.",
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
        "A patch that gives a value of a wrong type is refused with the name of the field, where a real server shows "
        "the patch as a whole; one that gives another kind or version is refused with a 400, not a 422.",
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
        "What a real server fails at with a 500 is refused with the status that fits, for clients try a 500 again: "
        "versions that are no numbers, targets of bindings, an apply that does not fit the structure of its kind, "
        "directives of a strategic patch that make no sense, and the eviction of a pod with two budgets.",
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
        "There are no endpoints, runtime classes, bindings apart from pods, nor events of the group `events.k8s.io`.",
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
        "Volumes and claims are not protected by finalizers, and a DaemonSet does not count its templates in an "
        "annotation.",
        (
            *_at("*/finalizers", f"{_BORN}[claim]", "objects/comes_outside_of_namespaces[persistent volume]"),
            ("objects/comes_outside_of_namespaces[persistent volume]", "*/lastPhaseTransitionTime"),
            (f"{_BORN}[daemon set]", "*/annotations"),
            (f"{_BORN}[daemon set]", "*/managedFields/*"),
        ),
    ),
    Known(
        "A definition is accepted with a schema that a real server rejects, if values can be validated by it all the "
        "same: one with keywords that are not supported or lists whose keys may be missing, and one in a group that "
        "needs approval.",
        _at(
            _OUTCOME,
            "definitions/is_refused_for_a_protected_group",
            "definitions/is_refused_for_its[selectable field that is not there]",
            "definitions/schema[map list with an optional key]",
            "definitions/schema[old value within a list]",
            "definitions/schema[unique items]",
        ),
    ),
    Known(
        "The ports of Services and the schedules of CronJobs are not checked: the embedded cluster does not use them.",
        _at(
            _OUTCOME,
            "objects/a_cron_job_is_refused[schedule of words]",
            "objects/a_service_is_refused[no ports]",
        ),
    ),
    Known(
        "Rules in CEL cannot use the libraries for formats, semantic versions, URLs, addresses, networks and lists; "
        "the cost of rules is not estimated, and an update that keeps an old violation gets no warning.",
        (
            *_at(
                _OUTCOME,
                "rules/with_a_library_of[addresses]",
                "rules/with_a_library_of[labels]",
                "rules/with_a_library_of[links]",
                "rules/with_a_library_of[networks]",
                "rules/with_a_library_of[sums]",
                "rules/with_a_library_of[versions]",
                "definitions/schema[rule that costs too much]",
            ),
            ("rules/that_come_later_spare_what_does_not_change", "*/warnings"),
        ),
    ),
    Known(
        "A default of a schema that is `null` stays in its definition.",
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
        "They give the same answers, but for these differences:\n\n" + "\n".join(bullets) + "\n"
    )


if __name__ == "__main__":
    sys.stdout.write(section())
