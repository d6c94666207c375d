"""The known differences between the embedded API server and a kube-apiserver.

An entry that is no longer true fails a test, and so does a difference that is not listed. The list is part of
`docs/embedded.md`: `python -m tests.conformance.known` prints that section, and a test compares it.
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


def _is_left_out(difference: Difference) -> bool:
    """Whether only an empty value is missing."""
    return difference.answered == ABSENT and _empty(difference.recorded)


def _empty(value: Any) -> bool:
    return all(map(_empty, value.values())) if isinstance(value, dict) else value in (None, 0, "", [])


def _other_message(difference: Difference) -> bool:
    """Whether both servers have a message, in different words."""
    return (
        isinstance(difference.recorded, str) and isinstance(difference.answered, str) and difference.answered != ABSENT
    )


@dataclass(frozen=True, slots=True)
class Known:
    """A known difference."""

    sentence: str
    """A sentence for the documentation: sentence the embedded server does."""
    patterns: tuple[tuple[str, str], ...]
    """Pairs of patterns: the case and the field of the answer."""
    when: Callable[[Difference], bool] = _anything

    def covers(self, case: str, difference: Difference) -> bool:
        """Whether a difference is this one."""
        return self.when(difference) and any(
            fnmatchcase(case, literal(where)) and fnmatchcase(difference.field, literal(field))
            for where, field in self.patterns
        )


def literal(pattern: str) -> str:
    """Escape the brackets in the name of a case."""
    return pattern.replace("[", "[[]")


def _in_cases(field: str, *cases: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of one field and several cases."""
    return tuple((case, field) for case in cases)


_MESSAGE = "*/message"
_OUTCOME = "*/status"
_CREATED = "objects/is_created_with_defaults_and_read"
_DAEMON_SETS = (f"{_CREATED}[daemon set]", "workloads/judged[other: daemon set]")

KNOWN: tuple[Known, ...] = (
    Known("Empty values are left out, where a real server writes some of them.", (("*", "*"),), _is_left_out),
    Known(
        "A Service gets no cluster IP and no node port: there is no network.",
        tuple(("*", f"*/{name}") for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "nodePort")),
    ),
    Known(
        "The answer to an access review has no managed fields.",
        (("discovery/self_subject_access_review", "*/managedFields"),),
    ),
    Known(
        "Some error messages differ; status code, reason and field are the same.",
        _in_cases(
            _MESSAGE,
            "apply/is_rejected*",
            "autoscalers/judged[* a text]",
            "autoscalers/judged[* a percentage]",
            "autoscalers/judged[* not a quantity]",
            "autoscalers/judged[bounds: minimum with a fraction]",
            "autoscalers/judged[metrics: mapping for a list]",
            "custom_resources/is_rejected_with_*",
            "definitions/schema[rule of an unknown field]",
            "definitions/is_rejected_for_its[one version twice]",
            "deletion/with_options_of*",
            "limits/quota_is_rejected[not a quantity]",
            "list/is_rejected_with*",
            "metadata/labels[number]",
            "metadata/wrong_type*",
            "objects/a_config_map_is_rejected*",
            "objects/a_deployment_is_rejected[replicas of a wrong type]",
            "objects/resources_of_a_container[not a quantity]",
            "patches/the_spec_of_a_pod_is_mostly_immutable*",
            "requests/creation_from*",
            "requests/json_too_deep",
            "field_validation/unknown_fields_of_a*",
            "subresources/scale_patch[of another name]",
            "subresources/scale_replaced_with_an_incomplete_body",
            "subresources/eviction_with[another kind]",
            "update/is_rejected_with*",
            "workloads/judged[* a text]",
            "workloads/judged[* a number]",
            "workloads/judged[* not a quantity]",
            "workloads/judged[other: job of a selector of its own]",
        ),
        _other_message,
    ),
    Known(
        "An error has each cause once, where a real server repeats some. For a definition it may have fewer or more "
        "causes, or another path of the same field.",
        (
            *_in_cases(
                "1/body/details/causes*",
                "autoscalers/judged[metrics: *type*]",
                "definitions/schema*",
                "definitions/is_rejected_for_its*",
                "objects/an_autoscaler_is_rejected[metric of no type]",
                "patches/a_merge_patch[changes the uid]",
            ),
            *_in_cases("1/body/message", "definitions/schema*", "definitions/is_rejected_for_its*"),
            *_in_cases(
                "2/body/details/causes",
                "deletion/rejects_new_finalizers",
                "metadata/the_deletion_timestamp_cannot_be_set",
            ),
            *_in_cases("3/body/*", "update/names_in_references_are_immutable"),
        ),
    ),
    Known(
        "A patch with a value of a wrong type is rejected with the path of the field, where a real server shows the "
        "whole patch; one with another kind or version is rejected with 400, not 422.",
        (
            *_in_cases(
                _OUTCOME, "patches/a_merge_patch[changes the *]", "custom_resources/is_rejected_with_another_kind"
            ),
            *_in_cases(
                "1/body/*",
                "patches/a_merge_patch[sets a wrong type]",
                "patches/a_strategic_patch[has a string for a list]",
                "subresources/scale_patch[of a wrong type]",
                "update/status_is_validated[string for a number]",
            ),
            *_in_cases(
                "*/warnings",
                "custom_resources/is_rejected_with_another_kind",
                "subresources/scale_patch[of an unknown field]",
            ),
        ),
    ),
    Known(
        "Some requests that a real server answers with 500, which clients retry, are rejected with another status "
        "code: versions that are not numbers, malformed bindings, an apply that does not fit the schema, unknown "
        "directives of strategic patches, and the eviction of a pod with two budgets.",
        _in_cases(
            _OUTCOME,
            "apply/is_rejected[an unknown field]",
            "apply/is_rejected[a wrong type]",
            "apply/yaml_numbers_are_not_strings",
            "apply/duplicate_containers_are_rejected",
            "custom_resources/is_not_applied_with*",
            "list/get_of_one_at_any_version",
            "objects/a_resource_version_cannot_be_set_on_create",
            "patches/a_merge_patch[names a version that is not a number]",
            "patches/a_strategic_patch[has an unknown directive]",
            "patches/a_strategic_patch[needs the name of a container]",
            "field_validation/unknown_fields_of_an_apply",
            "springtide/a_node_group_without_replicas_is_scaled",
            "subresources/scale_of_a_custom_kind_without_a_number",
            "subresources/binding_with*",
            "subresources/eviction_under_two_budgets",
            "update/is_rejected_with[a version that is not a number]",
            "watch/is_rejected_with[a version of a wrong type]",
        ),
    ),
    Known(
        "There are no endpoints, runtime classes, standalone bindings, and no events of the group `events.k8s.io`.",
        (
            *_in_cases(
                _OUTCOME,
                "discovery/resources_of[events.k8s.io/v1]",
                f"{_CREATED}[endpoints]",
                "objects/is_created_outside_of_namespaces[runtime class]",
                "objects/an_event*",
                "subresources/binding_by_the_old_path",
            ),
            *_in_cases(
                "*/body/resources",
                "discovery/core_resource[bindings]",
                "discovery/core_resource[endpoints]",
            ),
        ),
    ),
    Known(
        "Volumes and claims have no protection finalizers, and a DaemonSet has no annotation with its template "
        "generation.",
        (
            *_in_cases(
                "*/finalizers", f"{_CREATED}[claim]", "objects/is_created_outside_of_namespaces[persistent volume]"
            ),
            ("objects/is_created_outside_of_namespaces[persistent volume]", "*/lastPhaseTransitionTime"),
            *((case, "*/annotations") for case in _DAEMON_SETS),
            *((case, "*/managedFields/*") for case in _DAEMON_SETS),
        ),
    ),
    Known(
        "Definitions are checked less strictly: unsupported keywords, optional list keys, unknown selectable fields, "
        "rules that cannot use `oldSelf`, and groups that need approval are accepted.",
        _in_cases(
            _OUTCOME,
            "definitions/is_rejected_for_a_protected_group",
            "definitions/is_rejected_for_its[unknown selectable field]",
            "definitions/schema[map list with an optional key]",
            "definitions/schema[old value within a list]",
            "definitions/schema[unique items]",
        ),
    ),
    Known(
        "The ports of Services and the schedules of CronJobs are not checked: the embedded cluster does not use them.",
        _in_cases(
            _OUTCOME,
            "objects/a_cron_job_is_rejected[invalid schedule]",
            "objects/a_service_is_rejected[no ports]",
        ),
    ),
    Known(
        "The integers of built-in kinds may have more than 32 bits.",
        (("autoscalers/judged[bounds: maximum beyond 32 bits]", _OUTCOME),),
    ),
    Known(
        "The managed fields of a HorizontalPodAutoscaler of version 1 lack the target that is its default.",
        (("autoscalers/judged[version 1: bounds alone]", "*/managedFields/*"),),
    ),
    Known(
        "Rules in CEL cannot use the libraries for formats, semantic versions, URLs, addresses, networks and lists; "
        "the cost of rules is not estimated, and an update that keeps an old violation gets no warning.",
        (
            *_in_cases(
                _OUTCOME,
                "validation_rules/library[addresses]",
                "validation_rules/library[labels]",
                "validation_rules/library[links]",
                "validation_rules/library[networks]",
                "validation_rules/library[sums]",
                "validation_rules/library[versions]",
                "definitions/schema[rule that costs too much]",
            ),
            ("validation_rules/ratcheting_of_new_rules", "*/warnings"),
        ),
    ),
    Known(
        "A default of a schema that is `null` stays in the definition.",
        (("definitions/schema[null as default]", "*/default"),),
    ),
)

HEADING = "## Differences from a real API server"


def section() -> str:
    """Return the section for the documentation."""
    count = len(all_cases())
    bullets = [textwrap.fill(f"- {known.sentence}", 120, subsequent_indent="  ") for known in KNOWN]
    return (
        f"{HEADING}\n\n"
        f"{count} test cases run against the embedded server and a kube-apiserver (`tests/conformance`).\n"
        "The answers are equal except for these differences:\n\n" + "\n".join(bullets) + "\n"
    )


if __name__ == "__main__":
    sys.stdout.write(section())
