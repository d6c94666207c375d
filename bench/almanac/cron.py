"""The almanac compared with croniter and cronsim: speed, conformance, and a thousand schedules at once."""

from __future__ import annotations

from bench.almanac import conformance, expansion, throughput


def main() -> None:
    throughput.main()
    print()
    conformance.main()
    print()
    expansion.main()


if __name__ == "__main__":
    main()
