"""Check many random programs: ``PYTHONPATH=tests python -m oracle --programs 20000 --seed 0``."""

from __future__ import annotations

import argparse
import random
import sys
import time

from oracle.check import Law, check_many, ends_stuck, moves_of_a_hung_task
from oracle.generate import random_program


def main() -> int:
    parser = argparse.ArgumentParser(prog="oracle", description=__doc__)
    parser.add_argument("--programs", type=int, default=20_000, help="how many programs, each with one run")
    parser.add_argument("--small", type=int, default=1_000, help="how many small programs, each with all its runs")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; a failure names its own")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.programs)
    started = time.process_time()
    wrong = check_many(seeds)
    print(wrong or f"{len(seeds)} programs agree, {time.process_time() - started:.0f} s of processor time")
    print(f"{sum(map(ends_stuck, seeds)) / max(len(seeds), 1):.0%} of them end stuck")
    for seed in range(options.seed, options.seed + options.small):
        in_some_run = moves_of_a_hung_task(random_program(random.Random(seed), size=2), Law())
        if in_some_run is not None:
            wrong = f"small program of seed {seed}: {in_some_run}"
            print(wrong)
            break
    else:
        print(f"{options.small} small programs agree in all their runs")
    return wrong is not None


if __name__ == "__main__":
    sys.exit(main())
