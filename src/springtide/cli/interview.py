"""Questions of `springtide new` at a terminal, and the parsers of their answers.

Answers come from prompts or from options, and go through the same parsers: names, zones, windows, rules and targets
become parts of a manifest. At a terminal, an invalid answer is reported and asked for again; on the command line it
ends the command. Without a terminal, all missing options are listed. The parsers use the validation of manifests, so
that a mistake has one message.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import click

from springtide.almanac import Zone, load_zone
from springtide.apis.formats import FORMATS
from springtide.apis.karmada.targets import CronTarget
from springtide.apis.kinds import INT32_MAX
from springtide.apis.meta.scaling import expected_api_version
from springtide.apis.meta.times import rfc3339_in, written_time
from springtide.apis.schema import nearest
from springtide.cli.console import supports_unicode

A = TypeVar("A")


class AnswerError(ValueError):
    """An invalid answer: the reason, a hint, and the answer that was probably meant."""

    def __init__(self, message: str, hint: str = "", offer: str | None = None) -> None:
        self.message = message
        self.hint = hint
        self.offer = offer
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Prompt(Generic[A]):
    """A question, the option that answers it on the command line, and the parser of the answer."""

    option: str
    text: str
    read: Callable[[str], A]
    """Parses an answer; raises `AnswerError`."""
    default: str | None = None


class Interview:
    """Asks questions, or takes the answers from the command line."""

    def __init__(self, *, interactive: bool) -> None:
        if interactive:
            with suppress(ImportError):
                import readline  # noqa: F401 - makes arrow keys work in prompts
        self.interactive = interactive
        self._missing: list[str] = []

    def one(self, question: Prompt[A], given: str | None) -> A | None:
        """Get one answer; None without a terminal, which `complete` then reports."""
        if given is not None:
            return _accept(question, given)
        if self.interactive:
            return _ask(question, question.default)
        if question.default is not None:
            return _accept(question, question.default)
        self._missing.append(question.option)
        return None

    def several(
        self, question: Prompt[A], given: Sequence[str], check: Callable[[list[A]], None], *, needed: bool
    ) -> list[A]:
        """Get answers until an empty one; after each, `check` gets all of them and may refuse the last."""
        answers: list[A] = []
        for text in given:
            answers = _accept(_with_next_answer(question, answers, check), text)
        if given or not self.interactive:
            if needed and not answers:
                self._missing.append(question.option)
            return answers
        while True:
            enough = bool(answers) or not needed
            wording = f"{question.text} (empty to go on)" if enough else question.text
            text = click.prompt(wording, default="" if enough else None, show_default=False, err=True).strip()
            if not text and enough:
                return answers
            try:
                answers = _with_next_answer(question, answers, check).read(text)
            except AnswerError as failure:
                _show_error(failure)

    def complete(self) -> None:
        """End the command with an error that names all missing answers, if there are any."""
        if self._missing:
            needed = ", ".join(self._missing)
            raise click.UsageError(f"without a terminal, these options are required: {needed}")

    def confirmed(self, text: str) -> bool:
        """Ask for confirmation; without a terminal or an answer, that is a no."""
        return self.interactive and click.confirm(text, default=False, err=True)


def _with_next_answer(question: Prompt[A], before: list[A], check: Callable[[list[A]], None]) -> Prompt[list[A]]:
    """Create the prompt for one more answer, which is checked together with those before."""

    def read(text: str) -> list[A]:
        answers = [*before, question.read(text)]
        check(answers)
        return answers

    return Prompt(question.option, question.text, read)


def _accept(question: Prompt[A], text: str) -> A:
    try:
        return question.read(text.strip())
    except AnswerError as failure:
        message = failure.message + (f"; {failure.hint}" if failure.hint else "")
        raise click.BadParameter(message, param_hint=question.option) from None


def _ask(question: Prompt[A], default: str | None) -> A:
    while True:
        text = click.prompt(question.text, default=default, err=True, show_default=bool(default))
        try:
            return question.read(text.strip())
        except AnswerError as failure:
            _show_error(failure)
            # What was probably meant becomes the default.
            default = failure.offer or default


def _show_error(failure: AnswerError) -> None:
    click.echo("  " + click.style(failure.message, fg="red"), err=True)
    if failure.hint:
        click.echo("  " + click.style(f"{'→' if supports_unicode() else '->'} {failure.hint}", dim=True), err=True)


Tree: TypeAlias = dict[str, Any]

_DAY = 24 * 60
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_EVERY_DAY = ("daily", "every day", "everyday", "always")
_GROUPS = {"weekdays": (1, 2, 3, 4, 5), "weekends": (6, 0), "weekend": (6, 0)}
_TIMES = re.compile(r"(\d{1,2}(?::\d{2})?)\s*-\s*(\d{1,2}(?::\d{2})?)", re.ASCII)
_ONCE = re.compile(
    r"(?P<first>\d{4}-\d{2}-\d{2})(?:\s+(?P<opens>\d{1,2}(?::\d{2})?))?"
    r"(?:\s*-\s*(?:(?P<last>\d{4}-\d{2}-\d{2})\b\s*)?(?P<closes>\d{1,2}(?::\d{2})?)?)?",
    re.ASCII,
)
_WINDOW_FORM = "write days, times and replicas, such as mon-fri 08:30-18:00=6 or 2026-11-27 06:00-22:00=20"
_RULE_FORM = "write name, schedule and replicas, such as up=30 8 * * mon-fri:10"
_KINDS = {
    "deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment",
    "statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet",
    "replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet",
    "horizontalpodautoscaler": "HorizontalPodAutoscaler", "hpa": "HorizontalPodAutoscaler",
    "federatedhpa": "FederatedHPA", "fhpa": "FederatedHPA",
    "scaledobject": "ScaledObject", "so": "ScaledObject",
    "scalablenodegroup": "ScalableNodeGroup",
}  # fmt: skip
_API_VERSION = re.compile(r"(?:[^/]+/)?v\d+(?:(?:alpha|beta)\d+)?", re.ASCII)
_BOUNDS = re.compile(r"\d+\s*-\s*\d*|-\s*\d+", re.ASCII)
_MEANT = re.compile(r"did you mean (?P<name>\S+)\?")


def formatted(name: str) -> Callable[[str], str]:
    """Create a parser that checks a format of the manifests."""

    def read(text: str) -> str:
        for problem in FORMATS[name](text):
            if problem.severity == "error":
                meant = _MEANT.fullmatch(problem.hint)
                raise AnswerError(problem.message, problem.hint, meant["name"] if meant else None)
        return text

    return read


def optional(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let a parser return None for an empty answer."""
    return lambda text: read(text) if text else None


def replicas(text: str) -> int:
    """Parse a number of replicas."""
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) > INT32_MAX:
        raise AnswerError(f'"{text}" is not a number of replicas', "write a whole number, 0 or more")
    return int(text)


def target(text: str) -> Tree:
    """Parse `kind/name`, or `group/version/kind/name` for a kind that is not known here."""
    api_version, kind, name = ("", *text.split("/")) if text.count("/") == 1 else _split(text)
    known = _KINDS.get(kind.lower(), kind)
    meant = api_version or expected_api_version(known, None)
    if not meant:
        near = nearest(kind.lower(), _KINDS)
        hint = f"did you mean {near}/{name}?" if near else f"write group and version too: example.com/v1/{kind}/{name}"
        raise AnswerError(f'kind "{kind}" is not known here', hint, f"{near}/{name}" if near else None)
    return {"apiVersion": meant, "kind": known, "name": formatted("dns-subdomain")(name)}


def _split(text: str) -> tuple[str, str, str]:
    api_version, _, rest = text.rpartition("/")
    api_version, _, kind = api_version.rpartition("/")
    if not (kind and rest and _API_VERSION.fullmatch(api_version)):
        raise AnswerError(
            f'"{text}" is not a target', "write kind and name, such as deployment/shop, or example.com/v1/Kind/name"
        )
    return api_version, kind, rest


# Windows: days, times, replicas


def window_for(zone: str | None) -> Callable[[str], Tree]:
    """Create the parser of windows, each a behaviour; those of a date are read in this zone."""
    return lambda text: _window(text, load_zone(zone or "UTC"))


def _window(text: str, zone: Zone) -> Tree:
    """Parse a window; one whose end is before its start ends on the next day."""
    when, equals, count = text.rpartition("=")
    if not equals:
        raise AnswerError(f'"{text}" does not say how many replicas', _WINDOW_FORM)
    if (once := _ONCE.fullmatch(when.strip())) is not None:
        return _once(once, replicas(count.strip()), zone)
    days_text, opens, closes = _when(when.strip().lower())
    days = _days(days_text)
    if closes <= opens:
        closes += _DAY
    if closes - opens == _DAY and len(days) == 7:
        raise AnswerError(f'"{when}" covers all times', "give its replicas as the default")
    later, end = divmod(closes, _DAY)
    return {
        "name": f"{re.sub(r'[^a-z]+', '-', days_text).strip('-') or 'daily'}-{opens // 60:02}{opens % 60:02}",
        "replicas": replicas(count.strip()),
        "start": _pattern(days, opens),
        "end": _pattern([(day + later) % 7 for day in days], end),
    }


def _once(dates: re.Match[str], count: int, zone: Zone) -> Tree:
    """Make the behaviour of a date, or from one date to another; without times, whole days are meant."""
    if (dates["opens"] is None) != (dates["closes"] is None):
        raise AnswerError(f'"{dates[0]}" has only one time', "write both, such as 2026-11-27 06:00-22:00=20")
    opens = _minute(dates["opens"] or "0")
    closes = _minute(dates["closes"] or "24:00", last=True)
    first, last = _date(dates["first"]), _date(dates["last"] or dates["first"])
    if dates["last"] is None and closes <= opens:
        closes += _DAY
    if (last - first).days * _DAY + closes <= opens:
        raise AnswerError(f'"{dates[0]}" ends before it begins', "write a later end")
    return {
        "name": f"{dates['first']}-{opens // 60:02}{opens % 60:02}",
        "replicas": count,
        "priority": 1,  # an exception from windows that recur, wherever it is listed
        "from": _local_instant(first, opens, zone),
        "until": _local_instant(last, closes, zone),
    }


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise AnswerError(f"{text} is not a calendar date", _WINDOW_FORM) from None


def _local_instant(day: datetime.date, minute: int, zone: Zone) -> str:
    days = (day - datetime.date(1970, 1, 1)).days
    return rfc3339_in(zone.instant((days * _DAY + minute) * 60), zone)


def _when(text: str) -> tuple[str, int, int]:
    """Split days from times; without times, whole days are meant."""
    times = _TIMES.search(text)
    if times is None:
        return text, 0, _DAY
    if times.end() != len(text):
        raise AnswerError(f'"{text[times.end() :].strip()}" after the times is not understood', _WINDOW_FORM)
    return text[: times.start()].strip(), _minute(times[1]), _minute(times[2], last=True)


def _minute(clock: str, *, last: bool = False) -> int:
    hours, _, minutes = clock.partition(":")
    minute = int(hours) * 60 + int(minutes or 0)
    if int(minutes or 0) > 59 or minute > _DAY or (minute == _DAY and not last):
        raise AnswerError(f"{clock} is not a time of day", "choose one from 00:00 to 23:59, or 24:00 as the end")
    return minute


def _days(text: str) -> list[int]:
    if not text or text in _EVERY_DAY:
        return list(range(7))
    found: list[int] = []
    for element in filter(None, re.split(r"[,\s]+", "-".join(map(str.strip, text.split("-"))))):
        first, dash, last = element.partition("-")
        if element in _GROUPS:
            found += _GROUPS[element]
        elif dash:
            low, high = _day(first), _day(last)
            found += ((low + step) % 7 for step in range((high - low) % 7 + 1))
        else:
            found.append(_day(first))
    return list(dict.fromkeys(found))


def _day(name: str) -> int:
    if len(name) < 3 or name[:3] not in _DAYS:
        near = nearest(name, [*_DAYS, *_GROUPS])
        hint = f"did you mean {near}?" if near else "write mon, tue, wed, thu, fri, sat, sun, weekdays, weekends, daily"
        raise AnswerError(f'"{name}" is not a weekday', hint)
    return _DAYS.index(name[:3])


def _pattern(days: Iterable[int], minute: int) -> Tree:
    listed = list(days)
    pattern: Tree = {}
    if len(listed) < 7:
        pattern["weekdays"] = ",".join(_DAYS[day].title() for day in listed)
    hours, minutes = divmod(minute, 60)
    pattern["hours"] = hours
    if minutes:
        pattern["minutes"] = minutes
    return pattern


# Rules: a name, a schedule or an instant, replicas or bounds


def rule_for(reference: Tree, zone: str | None) -> Callable[[str], Tree]:
    """Create the parser of rules for a target: with bounds (`5-20`, `5-`, `-20`) for autoscalers, else replicas."""
    kind = CronTarget(api_version=reference["apiVersion"], kind=reference["kind"], name=reference["name"]).target_kind

    def read(text: str) -> Tree:
        name, equals, rest = text.partition("=")
        when, colon, count = rest.rpartition(":")
        if not equals or not colon or not name.strip():
            raise AnswerError(f'"{text}" is not a rule', _RULE_FORM)
        if not kind.has_bounds and _BOUNDS.fullmatch(count.strip()):
            raise AnswerError(
                f'"{count.strip()}" are bounds of an autoscaler, but a {reference["kind"]} has replicas',
                "write one number, or name the autoscaler as the target, such as hpa/shop",
            )
        action = _bounds(count.strip()) if kind.has_bounds else {"targetReplicas": replicas(count.strip())}
        return {"name": name.strip(), **_timing(when.strip(), zone), **action}

    return read


def _timing(text: str, zone: str | None) -> Tree:
    written = written_time(text)
    if written is None:
        schedule = formatted("cron-rule")(text)
        return {"schedule": schedule, **({"timeZone": zone} if zone else {})}
    local = load_zone(zone or "UTC")
    return {"at": text if written.complete else rfc3339_in(local.instant(written.wall), local)}


def _bounds(text: str) -> Tree:
    low, dash, high = text.partition("-")
    bounds: Tree = {}
    if low:
        bounds["targetMinReplicas"] = replicas(low)
    if dash and high:
        bounds["targetMaxReplicas"] = replicas(high)
    if not bounds:
        raise AnswerError(
            f'"{text}" has no bounds', "write 5-20, or 5- and -20 for one of them, as in up=30 8 * * *:5-20"
        )
    return bounds
