"""Server-side apply: who owns which field, who may take it, and what is left when an owner lets go."""

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
def creates_what_is_not_there(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.get(_PATH)


@case
def the_same_again_changes_nothing(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"a": "1"}), "one")


@case
def what_an_owner_leaves_out_goes(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1", "b": "2"}), "one")
    play.apply(_PATH, _config({"a": "1"}), "one")


@case
def another_manager_adds_its_own(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"b": "2"}), "two")


@case
def what_another_owns_is_a_conflict(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"a": "2"}), "two")


@case
def conflicts_of_several_fields_and_managers_are_all_told(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    play.apply(_PATH, _config({"c": "1"}, labels={"tier": "back"}), "two")
    play.apply(_PATH, _config({"a": "9", "b": "9", "c": "9"}, labels={"tier": "front"}), "three")


@case
def force_takes_the_field(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"a": "2"}), "two", force=True)
    play.apply(_PATH, _config({"a": "1"}), "one")


@case
def the_same_value_is_owned_together(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"a": "1"}), "two")
    play.apply(_PATH, _config(), "one")
    play.apply(_PATH, _config(), "two")


@case
def an_update_takes_what_it_changes(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    play.patch(_PATH, {"data": {"a": "2"}}, MERGE, fieldManager="editor")
    play.apply(_PATH, _config({"a": "1", "b": "1"}), "one")
    play.apply(_PATH, _config({"a": "2", "b": "1"}), "one")


@case
def a_key_that_an_owner_and_an_editor_hold_stays_with_the_editor(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.patch(_PATH, {"data": {"b": "2"}}, MERGE, fieldManager="editor")
    play.apply(_PATH, _config(), "one")


@case
def an_object_that_was_created_first_has_two_managers(play: Session) -> None:
    play.create("v1/configmaps", config_map(data={"a": "1", "b": "2"}))
    play.apply(_PATH, _config({"a": "1"}), "one")


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
def is_refused(play: Session, what: tuple[dict[str, str], Any]) -> None:
    query, body = what
    play.patch(_PATH, body, APPLY, **query)


@case
def a_version_does_not_keep_it_from_creating(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}, resourceVersion="1"), "one")


@case
def a_version_that_is_old_is_a_conflict(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.apply(_PATH, _config({"a": "2"}, resourceVersion="1"), "one")


@case
def force_is_for_apply_only(play: Session) -> None:
    play.prepare("v1/configmaps", config_map())
    play.patch(_PATH, {"data": {"a": "2"}}, MERGE, force=True)


@case
def yaml_is_understood(play: Session) -> None:
    body = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  a: 'yes'\n  b: |\n    two\n    lines\n"
    )
    play.apply(_PATH, body, "one")


@case
def numbers_of_yaml_are_not_strings(play: Session) -> None:
    play.apply(_PATH, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: 1}\n", "one")


def _web(**spec: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@case
def containers_are_owned_one_by_one(play: Session) -> None:
    play.apply(_WEB, deployment(), "owner")
    play.apply(_WEB, _web(template={"spec": {"containers": [container("mesh")]}}), "mesh")
    play.apply(_WEB, deployment(), "owner")
    play.apply(_WEB, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}, "mesh")


@case
def replicas_pass_to_who_scales(play: Session) -> None:
    play.apply(_WEB, deployment(replicas=2), "owner")
    play.patch(f"{_WEB}/scale", {"spec": {"replicas": 5}}, MERGE, fieldManager="scaler")
    play.apply(_WEB, deployment(replicas=2), "owner")
    play.apply(_WEB, deployment(), "owner")
    play.apply(_WEB, deployment(replicas=2), "owner", force=True)


@case
def status_is_applied_apart(play: Session) -> None:
    play.prepare("apps/v1/deployments", deployment())
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 3}}
    play.apply(f"{_WEB}/status", body, "controller")
    play.apply(f"{_WEB}/status", body | {"spec": {"replicas": 9}}, "controller")


@case
def status_of_what_is_not_there_is_not_created(play: Session) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 3}}
    play.apply(f"{_WEB}/status", body, "controller")


@case
def two_containers_of_one_name_are_refused(play: Session) -> None:
    body = deployment()
    body["spec"]["template"]["spec"] = pod_spec(containers=[container(), container()])
    play.apply(_WEB, body, "owner")


@case
def a_container_without_a_name_is_refused(play: Session) -> None:
    body = deployment()
    body["spec"]["template"]["spec"] = pod_spec(containers=[{"image": "example.com/app:1"}])
    play.apply(_WEB, body, "owner")


@case
def a_port_is_known_by_number_and_protocol(play: Session) -> None:
    both = [{"port": 53, "name": "tcp", "protocol": "TCP"}, {"port": 53, "name": "udp", "protocol": "UDP"}]
    play.apply("v1/services/web", service(ports=both), "one")
    play.apply("v1/services/web", service(ports=both[1:]), "one")


@case
def finalizers_are_a_set(play: Session) -> None:
    play.apply(_PATH, _config(finalizers=["example.com/a"]), "one")
    play.apply(_PATH, _config(finalizers=["example.com/b"]), "two")
    play.apply(_PATH, _config(), "one")


@case
def the_defaults_belong_to_nobody_else(play: Session) -> None:
    play.apply("v1/services/web", service(), "one")


@case
def an_object_that_goes_and_comes_back_is_a_new_one(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.delete(_PATH)
    play.apply(_PATH, _config({"a": "1"}), "one")


@case
def managers_are_known_by_operation(play: Session) -> None:
    play.apply(_PATH, _config({"a": "1"}), "one")
    play.patch(_PATH, {"data": {"a": "2"}}, MERGE, fieldManager="one")
    play.apply(_PATH, _config({"a": "3"}), "one")
