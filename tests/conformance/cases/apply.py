"""Server-side apply: ownership, conflicts, and removal of fields."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import config_map, container, deployment, pod_spec, service
from tests.conformance.session import APPLY, MERGE, Object, Session

_PATH = "v1/configmaps/settings"
_WEB = "apps/v1/deployments/web"


def _config(data: dict[str, Any] | None = None, **metadata: Any) -> Object:
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", **metadata}}
    return body | ({"data": data} if data else {})


@case
def creates_a_missing_object(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.get(_PATH)


@case
def is_idempotent(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"a": "1"}), "one")


@case
def removes_fields_that_are_no_longer_applied(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1", "b": "2"}), "one")
    session.apply(_PATH, _config({"a": "1"}), "one")


@case
def another_manager_adds_fields(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"b": "2"}), "two")


@case
def fields_of_another_manager_conflict(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"a": "2"}), "two")


@case
def all_conflicts_are_reported(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    session.apply(_PATH, _config({"c": "1"}, labels={"tier": "back"}), "two")
    session.apply(_PATH, _config({"a": "9", "b": "9", "c": "9"}, labels={"tier": "front"}), "three")


@case
def force_takes_fields_over(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"a": "2"}), "two", force=True)
    session.apply(_PATH, _config({"a": "1"}), "one")


@case
def equal_values_are_co_owned(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"a": "1"}), "two")
    session.apply(_PATH, _config(), "one")
    session.apply(_PATH, _config(), "two")


@case
def an_update_owns_changed_fields(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    session.patch(_PATH, {"data": {"a": "2"}}, MERGE, fieldManager="editor")
    session.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    session.apply(_PATH, _config({"a": "2", "b": "1"}), "one")


@case
def a_key_with_another_owner_is_not_removed(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.patch(_PATH, {"data": {"b": "2"}}, MERGE, fieldManager="editor")
    session.apply(_PATH, _config(), "one")


@case
def a_created_object_has_two_managers(session: Session) -> None:
    session.create("v1/configmaps", config_map(data={"a": "1", "b": "2"}))
    session.apply(_PATH, _config({"a": "1"}), "one")


@each(
    {
        "no manager": ({}, _config({"a": "1"})),
        "no kind": ({"fieldManager": "one"}, {"apiVersion": "v1", "metadata": {"name": "settings"}}),
        "no version of the API": ({"fieldManager": "one"}, {"kind": "ConfigMap", "metadata": {"name": "settings"}}),
        "another kind": ({"fieldManager": "one"}, _config() | {"kind": "Secret"}),
        "another name": ({"fieldManager": "one"}, _config(name="other")),
        "another namespace": ({"fieldManager": "one"}, _config(namespace="elsewhere")),
        "managed fields": ({"fieldManager": "one"}, _config(managedFields=[{"manager": "x"}])),
        "an unknown field": ({"fieldManager": "one"}, _config() | {"colour": "red"}),
        "a wrong type": ({"fieldManager": "one"}, _config({"a": 1})),
        "a manager that is too long": ({"fieldManager": "x" * 129}, _config()),
        "a manager with control characters": ({"fieldManager": "a\tb"}, _config()),
        "a list": ({"fieldManager": "one"}, []),
        "broken yaml": ({"fieldManager": "one"}, b"a: [b"),
    }
)
def is_rejected(session: Session, what: tuple[dict[str, str], Any]) -> None:
    query, body = what
    session.patch(_PATH, body, APPLY, **query)


@case
def a_resource_version_does_not_prevent_creation(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}, resourceVersion="1"), "one")


@case
def an_old_resource_version_is_a_conflict(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.apply(_PATH, _config({"a": "2"}, resourceVersion="1"), "one")


@case
def force_is_for_apply_only(session: Session) -> None:
    session.prepare("v1/configmaps", config_map())
    session.patch(_PATH, {"data": {"a": "2"}}, MERGE, force=True)


@case
def accepts_yaml(session: Session) -> None:
    body = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: 'yes'\n  b: |\n    two\n    lines\n"
    )
    session.apply(_PATH, body, "one")


@case
def yaml_numbers_are_not_strings(session: Session) -> None:
    session.apply(_PATH, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: 1}\n", "one")


def _web(**spec: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@case
def containers_have_separate_owners(session: Session) -> None:
    session.apply(_WEB, deployment(), "owner")
    session.apply(_WEB, _web(template={"spec": {"containers": [container("mesh")]}}), "mesh")
    session.apply(_WEB, deployment(), "owner")
    session.apply(_WEB, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}, "mesh")


@case
def a_scale_takes_the_replicas(session: Session) -> None:
    session.apply(_WEB, deployment(replicas=2), "owner")
    session.patch(f"{_WEB}/scale", {"spec": {"replicas": 5}}, MERGE, fieldManager="scaler")
    session.apply(_WEB, deployment(replicas=2), "owner")
    session.apply(_WEB, deployment(), "owner")
    session.apply(_WEB, deployment(replicas=2), "owner", force=True)


@case
def status_is_applied_separately(session: Session) -> None:
    session.prepare("apps/v1/deployments", deployment())
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 3}}
    session.apply(f"{_WEB}/status", body, "controller")
    session.apply(f"{_WEB}/status", body | {"spec": {"replicas": 9}}, "controller")


@case
def status_of_a_missing_object_is_not_found(session: Session) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 3}}
    session.apply(f"{_WEB}/status", body, "controller")


@case
def duplicate_containers_are_rejected(session: Session) -> None:
    body = deployment()
    body["spec"]["template"]["spec"] = pod_spec(containers=[container(), container()])
    session.apply(_WEB, body, "owner")


@case
def a_container_without_a_name_is_rejected(session: Session) -> None:
    body = deployment()
    body["spec"]["template"]["spec"] = pod_spec(containers=[{"image": "example.com/app:1"}])
    session.apply(_WEB, body, "owner")


@case
def ports_are_keyed_by_number_and_protocol(session: Session) -> None:
    both = [{"port": 53, "name": "tcp", "protocol": "TCP"}, {"port": 53, "name": "udp", "protocol": "UDP"}]
    session.apply("v1/services/web", service(ports=both), "one")
    session.apply("v1/services/web", service(ports=both[1:]), "one")


@case
def finalizers_are_a_set(session: Session) -> None:
    session.apply(_PATH, _config(finalizers=["example.com/a"]), "one")
    session.apply(_PATH, _config(finalizers=["example.com/b"]), "two")
    session.apply(_PATH, _config(), "one")


@case
def the_applier_owns_defaulted_fields_that_it_sets(session: Session) -> None:
    session.apply("v1/services/web", service(), "one")


@case
def a_deleted_object_is_created_anew(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.delete(_PATH)
    session.apply(_PATH, _config({"a": "1"}), "one")


@case
def apply_and_update_of_one_manager_are_separate(session: Session) -> None:
    session.apply(_PATH, _config({"a": "1"}), "one")
    session.patch(_PATH, {"data": {"a": "2"}}, MERGE, fieldManager="one")
    session.apply(_PATH, _config({"a": "3"}), "one")
