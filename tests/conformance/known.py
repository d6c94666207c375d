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


def _unreasoned(difference: Difference) -> bool:
    return (difference.recorded, difference.played) == (ABSENT, "InternalError")


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
_MANAGERS = "*/managedFields*"
_OUTCOME = "*/status"
_BORN = "objects/comes_with_its_defaults_and_stays_as_it_came"

KNOWN: tuple[Known, ...] = (
    Known("Values that are empty are left out, where a real server writes some of them.", (("*", "*"),), _left_out),
    Known(
        "A Service gets no address of its own and no port of the nodes: there is no network behind it.",
        tuple(("*", f"*/{name}") for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodePort")),
    ),
    Known(
        "An error that a real server gives no reason for has the reason `InternalError`.",
        (("*", "*/body/reason"),),
        _unreasoned,
    ),
    Known(
        "What the server itself adds to an object belongs to who wrote it: tolerations of pods, labels of jobs, "
        "finalizers of namespaces; and fields that a real server does not track are tracked.",
        _at(
            _MANAGERS,
            "collecting/a_namespace_goes_with_what_is_in_it",
            "collecting/a_namespace_that_goes_takes_nothing_new",
            "deleting/of_a_pod_*",
            "deleting/grace_is_read_from_the_query_too",
            "deleting/with_options_of[grace below zero]",
            "deleting/of_a_namespace_only_begins",
            "discovery/what_the_admin_may",
            "limits/quota_*",
            "limits/limit_range_*",
            "limits/priority_*",
            "metadata/namespace_on_what_has_none",
            f"{_BORN}[pod]",
            f"{_BORN}[*job]",
            f"{_BORN}[controller revision]",
            f"{_BORN}[daemon set]",
            "objects/comes_outside_of_namespaces[namespace]",
            "objects/status_*",
            "objects/resources_of_a_container*",
            "objects/a_grace_below_zero_is_one_second",
            "patches/*",
            "subresources/*",
            "trials/of_the_deletion_of_a_pod",
            "updating/*",
            "watching/a_pod_enters_the_view_of_its_node",
        ),
    ),
    Known(
        "Some refusals are in other words; their status, their reason and the field that they name are the same.",
        _at(
            _WORDS,
            "applying/is_refused*",
            "applying/numbers_of_yaml_are_not_strings",
            "custom/is_refused_with_*",
            "definitions/schema[broken pattern]",
            "definitions/schema[rule of an unknown field]",
            "definitions/is_refused_for_its[one version twice]",
            "deleting/with_options_of*",
            "listing/is_refused_with*",
            "metadata/labels*",
            "metadata/owners[twice controller]",
            "metadata/of_a_wrong_type*",
            "objects/a_deployment_is_refused[unknown strategy]",
            "objects/a_budget_is_refused[both bounds]",
            "objects/a_node_is_refused[taint twice]",
            "patches/a_merge_patch*",
            "patches/a_json_patch[is an object]",
            "patches/of_the_spec_of_a_pod_only_a_little_may_change*",
            "requests/creation_from*",
            "requests/patch_from_what_is_broken[merge]",
            "requests/json_that_is_too_deep",
            "selecting/by_*",
            "strictness/unknown_fields_of_a*",
            "subresources/scale_*",
            "subresources/eviction_with*",
            "updating/is_refused_with*",
        ),
        _in_other_words,
    ),
    Known(
        "A refusal may name fewer or more causes than that of a real server, or the field by another of its paths.",
        (
            *_at(
                "1/body/details/causes*",
                "definitions/schema*",
                "definitions/is_refused_for_its*",
                "metadata/finalizer[empty]",
                "metadata/owners[without *]",
                "metadata/a_prefix_that_makes_no_name*",
                "objects/a_deployment_is_refused[no selector]",
                "objects/an_autoscaler_is_refused*",
                "objects/a_node_is_refused[taint without effect]",
                "patches/a_merge_patch[changes the uid]",
            ),
            *_at(
                "1/body/message",
                "definitions/schema*",
                "definitions/is_refused_for_its*",
                "metadata/owners[without *]",
                "metadata/a_prefix_that_makes_no_name*",
                "objects/a_deployment_is_refused[no selector]",
                "objects/a_node_is_refused[taint without effect]",
            ),
            *_at("2/body/details/causes", "deleting/allows_no_new_finalizers", "metadata/deletion_cannot_be_written"),
            *_at("3/body/*", "updating/labels_change_but_not_names_in_references"),
        ),
    ),
    Known(
        "A value of a wrong type is refused with 422 and named by its field; a real server often stops at decoding the "
        "body, with a 400 or about the patch as a whole.",
        (
            *_at(
                _OUTCOME,
                "limits/quota_is_refused[no quantity]",
                "objects/resources_of_a_container[no quantity]",
                "objects/a_deployment_is_refused[replicas in words]",
                "objects/a_config_map_is_refused*",
                "requests/creation_from_yaml[a number as text]",
                "patches/a_merge_patch[changes the *]",
                "custom/is_refused_with_another_type",
            ),
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
        "What a real server fails at with a 500 is refused with the status that fits: versions that are no numbers, "
        "targets of bindings, fields of an apply that nobody knows.",
        _at(
            _OUTCOME,
            "applying/is_refused[an unknown field]",
            "applying/a_container_without_a_name_is_refused",
            "custom/is_not_applied_with[unknown field]",
            "listing/get_of_one_at_any_version",
            "objects/a_version_cannot_be_given_at_birth",
            "patches/a_merge_patch[names a version that is no number]",
            "patches/a_json_patch[does what nobody knows]",
            "strictness/unknown_fields_of_an_apply",
            "subresources/scale_of_a_custom_kind_without_a_number",
            "subresources/binding_with*",
            "updating/is_refused_with[a version that is no number]",
            "watching/is_refused_with[a version in words]",
        ),
    ),
    Known(
        "Rules that no capacity depends on are not checked: ports of Services, networks of Nodes, schedules of "
        "CronJobs, sizes of ConfigMaps, the versions in owner references and times that a client should not write.",
        _at(
            _OUTCOME,
            "objects/a_service_is_refused*",
            "objects/a_node_is_refused[network without mask]",
            "objects/a_cron_job_is_refused*",
            "requests/an_object_that_is_too_large",
            "metadata/owners[strange version]",
            "metadata/of_a_wrong_type[creation of words]",
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
        ),
    ),
    Known(
        "The use of a quota is counted by its controller only, and not already when an object is admitted.",
        (
            *_at("*/status/used/*", "limits/quota_counts_what_is_made", "limits/quota_sums_requests"),
            ("limits/quota_counts_what_is_made", "*/resourceVersion"),
        ),
    ),
    Known(
        "Rules in CEL know no formats and no semantic versions, their cost is not estimated, and a rule that is broken "
        "and tolerated is not warned of.",
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
        "An object that is stored in one version of a custom kind gets the defaults of the other when that is read.",
        (
            *_at("*/spec/b", "custom/in_two_versions_*"),
            ("custom/in_two_versions_is_patched_in_either", _MANAGERS),
            ("definitions/schema[null as default]", "*/default"),
        ),
    ),
    Known(
        "A subresource that a custom kind does not have is not found as a resource, and its scale is refused as a "
        "`Scale`.",
        (
            ("custom/status_is_a_field_where_it_is_not_apart", "3/body/*"),
            ("subresources/scale_of_a_custom_kind", "5/body/*"),
        ),
    ),
    Known(
        "A PUT creates nothing, nor does an apply that names a version; and a Pod that is replaced must bring along "
        "what the server added to it.",
        _at(
            _OUTCOME,
            "updating/of_what_is_not_there_is_not_found",
            "updating/without_a_version_by_kind[pod]",
            "applying/a_version_does_not_keep_it_from_creating",
        ),
    ),
    Known(
        "A selector of a PodDisruptionBudget is merged by a strategic patch, not replaced.",
        (("patches/the_labels_of_a_budget[strategic]", "*/matchLabels/app"),),
    ),
    Known(
        "A patch that is `null` is refused.",
        _at(
            _OUTCOME,
            "requests/patch_from_what_is_broken[json]",
            "requests/patch_from_what_is_broken[strategic]",
        ),
    ),
    Known(
        "Small things: `generation` cannot be given, repeated owners stay, a negative grace period stays, `podIPs` do "
        "not follow `podIP`, only the server finalizes a namespace, and an eviction names its pod by the plural.",
        (
            ("objects/what_the_server_says_of_an_object_cannot_be_given", "*/generation"),
            ("metadata/owners[twice the same]", "*"),
            ("objects/a_grace_below_zero_is_one_second", "*/terminationGracePeriodSeconds"),
            ("updating/status_of_a_pod", "*/podIPs"),
            ("subresources/the_end_of_a_namespace_is_finalized", "*/finalizers"),
            ("subresources/eviction_with[uid that is another's]", "*/details/kind"),
        ),
    ),
    Known(
        "The path of one object can be watched; a real server gives the object.",
        (("watching/the_path_of_an_object_watches_it_too", "*"),),
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
