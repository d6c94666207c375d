"""Issued certificates, and the rotation of certificates as a state machine.

When certificates are renewed, and how an authority hands over to the next.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from hypothesis import given
from hypothesis import strategies as st

from springtide.cluster.certificates.issuance import make_authority
from springtide.cluster.certificates.rotation import (
    CertificateLifetimes,
    CertificateState,
    InvalidSecret,
    RotationStep,
    after_step,
    authorities,
    initial_state,
    next_step,
    read_secret,
    secret_data,
)


def test_the_repr_of_a_pair_does_not_contain_the_key() -> None:
    pair = make_authority("test", now=1_800_000_000, seconds=3600)

    assert b"PRIVATE KEY" in pair.key
    assert "PRIVATE KEY" not in repr(pair)
    assert repr(pair.key) not in repr(pair)


DAY = 86_400
START = 1_767_571_200  # 2026-01-05T00:00:00Z
NAMES = ("springtide.springtide-system.svc",)
TERMS = CertificateLifetimes()


def settled(
    state: CertificateState | None, now: int, terms: CertificateLifetimes = TERMS
) -> tuple[CertificateState, list[RotationStep]]:
    """Take all steps that are due at an instant."""
    steps: list[RotationStep] = []
    while (step := next_step(state, now, NAMES, terms)) is not RotationStep.WAIT:
        steps.append(step)
        assert len(steps) < 10, steps
        state = (
            initial_state(now, NAMES, terms)
            if state is None or step is RotationStep.BEGIN
            else after_step(step, state, now, NAMES, terms)
        )
    assert state is not None
    return state, steps


def verified(state: CertificateState) -> bool:
    """Return whether a bundle verifies the serving certificate."""
    shown = x509.load_pem_x509_certificate(state.serving.pair.certificate)
    for authority in x509.load_pem_x509_certificates(state.bundle):
        if shown.issuer == authority.subject:
            try:
                shown.verify_directly_issued_by(authority)
            except InvalidSignature:
                continue
            return True
    return False


def history(days: Iterator[int] | range) -> dict[int, list[RotationStep]]:
    """Return the days on which a step was taken."""
    state: CertificateState | None = None
    done: dict[int, list[RotationStep]] = {}
    for day in days:
        state, steps = settled(state, START + day * DAY)
        assert verified(state)
        if steps:
            done[day] = steps
    return done


def test_a_year_and_a_half() -> None:
    """Serving certificates every 20 days; an authority after 244, over an hour, whose predecessor leaves later."""
    done = history(range(600))

    changes = {day: steps for day, steps in done.items() if steps != [RotationStep.RENEW]}
    assert changes == {
        0: [RotationStep.BEGIN],
        244: [RotationStep.PREPARE, RotationStep.ANNOUNCE],
        245: [RotationStep.PROMOTE],
        270: [RotationStep.FORGET],
        488: [RotationStep.PREPARE, RotationStep.ANNOUNCE],
        489: [RotationStep.PROMOTE],
        515: [RotationStep.FORGET],
    }
    renewals = [day for day, steps in done.items() if steps == [RotationStep.RENEW]]
    assert renewals[:13] == [*range(20, 241, 20), 265]


@pytest.fixture(scope="module")
def fresh() -> CertificateState:
    return initial_state(START, NAMES, TERMS)


@pytest.fixture(scope="module")
def prepared(fresh: CertificateState) -> CertificateState:
    return after_step(RotationStep.PREPARE, fresh, START + 250 * DAY, NAMES, TERMS)


def test_a_fresh_state_needs_no_step(fresh: CertificateState) -> None:
    assert next_step(fresh, START + DAY, NAMES, TERMS) is RotationStep.WAIT


def test_a_missing_state_is_created() -> None:
    assert next_step(None, START, NAMES, TERMS) is RotationStep.BEGIN


def test_other_names_need_another_certificate(fresh: CertificateState) -> None:
    """And no names are dropped: otherwise replicas of two versions would undo each other's writes."""
    mine, theirs = ("a.svc",), NAMES

    assert next_step(fresh, START, mine, TERMS) is RotationStep.RENEW
    made = after_step(RotationStep.RENEW, fresh, START, mine, TERMS)

    assert next_step(made, START, mine, TERMS) is RotationStep.WAIT
    assert next_step(made, START, theirs, TERMS) is RotationStep.WAIT


def test_a_successor_signs_only_after_the_propagation_time(prepared: CertificateState) -> None:
    """The time counts from its announcement, not from its creation."""
    late = START + 260 * DAY

    assert next_step(prepared, late, NAMES, TERMS) is RotationStep.ANNOUNCE
    announced = after_step(RotationStep.ANNOUNCE, prepared, late, NAMES, TERMS)

    assert next_step(announced, late + TERMS.propagation - 1, NAMES, TERMS) is not RotationStep.PROMOTE
    assert next_step(announced, late + TERMS.propagation, NAMES, TERMS) is RotationStep.PROMOTE


def test_a_former_authority_is_trusted_until_its_last_certificate_ends(fresh: CertificateState) -> None:
    renewed = after_step(RotationStep.RENEW, fresh, START + 240 * DAY, NAMES, TERMS)
    state = after_step(RotationStep.PREPARE, renewed, START + 250 * DAY, NAMES, TERMS)
    state = after_step(RotationStep.PROMOTE, state, START + 251 * DAY, NAMES, TERMS)

    assert next_step(state, START + 270 * DAY - 1, NAMES, TERMS) is not RotationStep.FORGET
    assert next_step(state, START + 270 * DAY, NAMES, TERMS) is RotationStep.FORGET
    assert (
        after_step(RotationStep.FORGET, state, START + 270 * DAY, NAMES, TERMS).bundle
        == state.authority.pair.certificate
    )


def test_only_expired_authorities_are_forgotten(fresh: CertificateState, prepared: CertificateState) -> None:
    anew = initial_state(START, NAMES, TERMS, prepared.bundle)
    one, other = anew.former
    state = replace(anew, former=(replace(one, until=START + 5), other))

    assert after_step(RotationStep.FORGET, state, START + 5, NAMES, TERMS).former == (other,)


@pytest.mark.parametrize(
    ("after", "steps"),
    [
        pytest.param(29 * DAY, [RotationStep.RENEW], id="most of a month"),
        pytest.param(40 * DAY, [RotationStep.RENEW], id="longer than a serving certificate"),
        pytest.param(
            300 * DAY, [RotationStep.PREPARE, RotationStep.ANNOUNCE, RotationStep.RENEW], id="past the promotion"
        ),
        pytest.param(
            364 * DAY,
            [RotationStep.PREPARE, RotationStep.ANNOUNCE, RotationStep.RENEW],
            id="the last day of the authority",
        ),
        pytest.param(400 * DAY, [RotationStep.BEGIN], id="longer than an authority"),
        pytest.param(-DAY, [RotationStep.BEGIN], id="a clock that was wrong"),
    ],
)
def test_a_stopped_cluster_converges_in_a_few_steps(
    fresh: CertificateState, after: int, steps: list[RotationStep]
) -> None:
    """After which the serving certificate is valid."""
    state, taken_ = settled(fresh, START + after)

    assert steps == taken_
    assert state.serving.begins <= START + after < state.serving.ends
    assert verified(state)


def test_the_successor_of_an_expired_authority_is_promoted(prepared: CertificateState) -> None:
    """Announced or not: no other authority is valid."""
    assert next_step(prepared, START + 366 * DAY, NAMES, TERMS) is RotationStep.PROMOTE


def test_an_announcement_in_the_future_is_repeated(prepared: CertificateState) -> None:
    """The clock of a replica was wrong, and must not delay the promotion by years."""
    wrong = replace(prepared, announced=START + 9000 * DAY)

    assert next_step(wrong, START + 251 * DAY, NAMES, TERMS) is RotationStep.ANNOUNCE


def test_published_authorities_stay_trusted_in_a_new_state(fresh: CertificateState) -> None:
    """Other replicas serve the old certificate until they have read the new state."""
    anew = initial_state(START + DAY, NAMES, TERMS, fresh.bundle)

    assert fresh.authority.pair.certificate in anew.bundle
    assert [old.until for old in anew.former] == [START + DAY + TERMS.serving]


def test_an_invalid_published_bundle_is_ignored(fresh: CertificateState) -> None:
    ended = make_authority("old", now=START - 20 * DAY, seconds=DAY).certificate

    assert initial_state(START, NAMES, TERMS, ended).former == ()
    assert initial_state(START, NAMES, TERMS, b"no certificates").former == ()


@given(st.lists(st.integers(0, 400 * DAY), min_size=1, max_size=8), st.integers(0, 40 * DAY))
def test_steps_converge_at_any_time(pauses: list[int], propagation: int) -> None:
    """At any instants, after any pauses: a few steps, then none, and the serving certificate is valid and trusted."""
    terms = replace(TERMS, propagation=propagation)
    state: CertificateState | None = None
    now = START
    for pause in pauses:
        now += pause
        state, _ = settled(state, now, terms)

        assert verified(state)
        assert state.serving.begins <= now < state.serving.ends
        assert len(authorities(state.bundle)) == len(state.former) + (2 if state.successor else 1)


class TestSecret:
    """The state in the Secret."""

    @pytest.mark.parametrize("which", ["fresh", "prepared", "promoted"])
    def test_everything_is_read_back(self, which: str, fresh: CertificateState, prepared: CertificateState) -> None:
        promoted = after_step(RotationStep.PROMOTE, prepared, START + 251 * DAY, NAMES, TERMS)
        state = {"fresh": fresh, "prepared": replace(prepared, announced=5), "promoted": promoted}[which]

        assert state == read_secret({"data": secret_data(state)})

    @pytest.mark.parametrize(
        "edit",
        [
            pytest.param(lambda data: data.clear(), id="emptied"),
            *(pytest.param(lambda data, key=key: data.pop(key), id=f"without {key}") for key in
              ("tls.crt", "tls.key", "ca.crt", "ca.key", "former.crt", "rotation.json", "next-ca.key")),
            pytest.param(lambda data: data.update({"tls.crt": "%%%"}), id="not base64"),
            pytest.param(lambda data: data.update({"tls.crt": 5}), id="a number"),
            pytest.param(lambda data: data.update({"tls.crt": "aGVsbG8="}), id="no certificate"),
            pytest.param(lambda data: data.update({"tls.key": data["ca.key"]}), id="another's key"),
            pytest.param(lambda data: data.update({"ca.crt": data["next-ca.crt"], "ca.key": data["next-ca.key"]}),
                         id="another authority"),
            pytest.param(lambda data: data.update({"rotation.json": "e30="}), id="no notes"),
            pytest.param(lambda data: data.update({"former.crt": data["ca.crt"]}), id="one without a note"),
        ],
    )  # fmt: skip
    def test_what_was_edited_is_told_apart(self, edit: Any, prepared: CertificateState) -> None:
        data: dict[str, Any] = secret_data(prepared)
        edit(data)

        with pytest.raises(InvalidSecret):
            read_secret({"data": data})

    @pytest.mark.parametrize("secret", [{}, {"data": None}, {"data": []}], ids=["none", "null", "list"])
    def test_no_data_at_all(self, secret: Any) -> None:
        with pytest.raises(InvalidSecret, match="it has no data"):
            read_secret(secret)

    @given(
        st.sampled_from(["tls.crt", "tls.key", "ca.crt", "ca.key", "rotation.json"]),
        st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=3),
    )
    def test_no_edit_is_too_strange(self, name: str, edits: list[tuple[int, int]]) -> None:
        """With changed bytes it is decoded, or `InvalidSecret` is raised."""
        parts: dict[str, Any] = secret_data(initial_state(START, NAMES, TERMS))
        text = bytearray(base64.b64decode(parts[name]))
        for place, byte in edits:
            text[place % len(text)] = byte
        parts[name] = base64.b64encode(text).decode()
        try:
            found = read_secret({"data": parts})
        except InvalidSecret:
            return
        assert verified(found)

    def test_nobody_is_told_a_key(self, prepared: CertificateState) -> None:
        """The message about an invalid Secret is logged."""
        data: dict[str, Any] = secret_data(prepared)
        data["tls.key"] = data["ca.key"]

        with pytest.raises(InvalidSecret) as raised:
            read_secret({"data": data})

        assert json.dumps(str(raised.value)) == '"tls.key is not the key of tls.crt"'
