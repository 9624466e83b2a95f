"""Of the splits that a source published for the same job on the same GPUs: is our first its best?

Told for each reading of "the same", with the source among the rows of the fit and left out of it.
`python -m benchmarks.bench_choice rows.csv` reads another table of measured steps; the fits stand
on the one that ships.
"""

from __future__ import annotations

import sys
from pathlib import Path

from engine.calibrate.backtest_training import rows_of
from engine.calibrate.training_choice import (
    CLOSE,
    FEWEST,
    READINGS,
    choice_losses,
    predictions,
    shares,
)

NAME = "choice of the split among published ones (goal: within 5% of the best in 80% of sweeps)"
ROWS = Path(__file__).resolve().parents[1] / "data" / "measured_training.csv"


def run(path: Path = ROWS) -> None:
    """Print the share of sweeps in which the choice is close to the best, by reading."""
    rows = rows_of(path)
    fitted, measured = predictions(rows)
    unseen, _ = predictions(rows, rows_of(ROWS))
    print(
        f"  sweeps of {FEWEST} splits or more; a good choice is within {CLOSE:.0%} of the best; "
        "the second share is with the source's family left out of the fit"
    )
    for said, same in READINGS.items():
        inside = choice_losses(rows, fitted, measured, same)
        outside = choice_losses(rows, unseen, measured, same)
        share, n = shares(inside)
        print(f"  {said}: {share:.0%} and {shares(outside)[0]:.0%} of {n} sweeps")
        for group, part in sorted(inside.items()):
            near = shares({group: part})[0]
            if near < 1:
                away = shares({group: outside[group]})[0]
                print(
                    f"    {group:<32} {near:.0%} and {away:.0%} of {len(part)}, "
                    f"worst {max(part):.1%} slower"
                )


if __name__ == "__main__":
    run(Path(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
