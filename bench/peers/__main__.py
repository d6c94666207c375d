"""`make bench-peers`: Karpenter's scheduling benchmark and our packer on the same pods, one after the other.

Karpenter's own benchmark is run too, unchanged: it draws other pods of the same distribution, and shows that
Karpenter's scheduler is not slower on our pods than on its own. Ratios are of CPU seconds. Both plans are replayed by
kube-scheduler's rules with all nodes ready at once: `refused` pods do not bind at their turn, `stranded` ones never.
Where Karpenter leaves the zone of a node open, the node comes up in the first one, as from Karpenter's fake provider;
which zones it leaves open differs from run to run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.peers import mix
from bench.peers.karpenter import Karpenter, NoGo, Preferences
from bench.peers.ours import plan_with_ours
from bench.peers.replay import Plan, Replay, amounts, full_name, replay

FASTER: Final = 40
"""Times that our packer must be faster than Karpenter."""
CHEAPER: Final = 0.70
"""Share of Karpenter's cost that our plan may have."""
MOST_ABOVE: Final = 0.08
"""How far the cost may be above the bound, at 10,000 pods."""
PREFERENCE_SECONDS: Final = 2.0

Pods = Sequence[Mapping[str, Any]]
Types = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """One row of Karpenter's benchmark."""

    title: str
    pods: Pods
    own_name: str
    preferences: Preferences = "Respect"

    @property
    def is_mix(self) -> bool:
        return "preference" not in self.title


def cases(sizes: Sequence[int], *, preferences: bool) -> list[Case]:
    """Return what is measured."""
    found = [Case(f"{size:,} pods", mix.mix_pods(size), f"BenchmarkScheduling{size}") for size in sizes]
    if preferences:
        pods = mix.preference_pods()
        title = f"{len(pods):,} preference pods"
        found.append(Case(f"{title}, Ignore", pods, "BenchmarkIgnorePreferences", "Ignore"))
        found.append(Case(f"{title}, Respect", pods, "BenchmarkRespectPreferences", "Respect"))
    return found


def cost(plan: Plan, types: Types) -> float:
    """Return the price of all nodes per hour by the list of types, whatever the plan says."""
    prices = {
        (each["name"], offering["zone"], offering["capacityType"]): offering["price"]
        for each in types
        for offering in each["offerings"]
        if offering["available"]
    }
    return float(sum(prices[node["type"], node["zone"], node["capacityType"]] for node in plan["nodes"]))


def check_complete(plan: Plan, pods: Pods) -> None:
    """Fail unless the plan has every pod exactly once."""
    planned = sorted(pod for node in plan["nodes"] for pod in node["pods"])
    if planned != sorted(map(full_name, pods)):
        raise SystemExit(f"the plan has {len(planned):,} pods, and not each of the {len(pods):,} once")


def check_same_types(theirs: Types, ours: Types) -> None:
    """Fail unless both schedulers have the same instance types: quantities may be written differently."""

    def values(types: Types) -> list[Any]:
        return [
            (each["name"], amounts(each["capacity"]), amounts(each["overhead"]), each["offerings"]) for each in types
        ]

    if values(theirs) != values(ours):
        raise SystemExit("Karpenter's fake provider has other instance types than bench.peers.mix")


def row(name: str, plan: Plan, price: float, bound: float | None, replayed: Replay) -> str:
    above = f"{price / bound - 1:9.1%}" if bound else f"{'-':>9}"
    because = ", ".join(f"{count:,} {reason}" for reason, count in sorted(replayed.because.items()))
    return (
        f"  {name:10} {plan['cpuSeconds']:9.3f} {plan['seconds']:9.3f} {len(plan['nodes']):7,} {price:11,.2f} {above}"
        f" {replayed.refused:8,} {replayed.stranded:9,}  {because}"
    ).rstrip()


def goal(name: str, kept: bool) -> str:
    return f"{name}: {'kept' if kept else 'MISSED'}"


def compare(case: Case, karpenter: Karpenter, types: Types, *, own: bool) -> None:
    """Measure one case and print it."""
    print(f"\n{case.title}")
    if own:
        result = karpenter.own_benchmark(case.own_name)
        print(
            f"  Karpenter's {case.own_name}: {result.seconds:.2f} s, {result.nodes:,} nodes"
            f" (with its preparation {result.cpu_seconds:.2f} CPU s)"
        )
    theirs = karpenter.plan(case.pods, case.preferences)
    check_complete(theirs, case.pods)
    ours = plan_with_ours(case.pods, types)
    bound = ours.get("bound")
    print(
        f"  {'':10} {'CPU s':>9} {'s':>9} {'nodes':>7} {'cost/h':>11} {'> bound':>9} {'refused':>8} {'stranded':>9}"
        "  refused by"
    )
    their_cost = cost(theirs, types)
    print(row("Karpenter", theirs, their_cost, bound, replay(theirs, case.pods, types)))
    check_complete(ours, case.pods)
    our_cost, replayed = cost(ours, types), replay(ours, case.pods, types)
    print(row("Springtide", ours, our_cost, bound, replayed))
    faster, share = theirs["cpuSeconds"] / ours["cpuSeconds"], our_cost / their_cost
    print(
        f"  Springtide is {faster:,.1f} times as fast in CPU seconds"
        f" ({theirs['seconds'] / ours['seconds']:,.1f} by the clock), at {share:.3f} of the cost"
    )
    goals = [goal("no pod refused", not replayed.refused)]
    if case.is_mix:
        goals += [
            goal(f"{FASTER} times as fast", faster >= FASTER),
            goal(f"{CHEAPER:.2f} of the cost", share <= CHEAPER),
            goal("no more nodes", len(ours["nodes"]) <= len(theirs["nodes"])),
        ]
        if bound and len(case.pods) >= max(mix.SIZES):
            goals.append(goal(f"{MOST_ABOVE:.0%} above the bound", our_cost <= bound * (1 + MOST_ABOVE)))
    else:
        goals.append(goal(f"less than {PREFERENCE_SECONDS:.0f} s", ours["cpuSeconds"] < PREFERENCE_SECONDS))
    print(f"  goals: {'; '.join(goals)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=mix.SIZES, help="numbers of pods of the mix")
    parser.add_argument("--no-preferences", action="store_true", help="leave out the preference pods")
    parser.add_argument("--no-own", action="store_true", help="leave out Karpenter's own benchmark")
    asked = parser.parse_args()
    try:
        karpenter = Karpenter()
    except NoGo as missing:
        print(f"skipped: {missing}; `make bench` measures the same pods without Karpenter")
        return
    types = mix.karpenter_types()
    check_same_types(karpenter.types(), types)
    for case in cases(asked.sizes, preferences=not asked.no_preferences):
        compare(case, karpenter, types, own=not asked.no_own)


if __name__ == "__main__":
    main()
