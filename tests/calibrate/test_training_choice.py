"""The choice of a split among published ones: how a loss is counted, and how often it is small."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.calibrate.backtest_training import rows_of
from engine.calibrate.training_choice import READINGS, choice_losses, predictions, shares

SHIPPED = Path(__file__).resolve().parents[2] / "data" / "measured_training.csv"
BATCH, JOB, CLUSTER, TABLE = READINGS.values()


def row(tp: int, batch: int = 8, **more: str) -> dict[str, str]:
    return {
        "group": "a", "model": "m", "params_b": "1", "seq_len": "1000", "gpu": "X", "gpus": "8",
        "tp": str(tp), "global_batch_seqs": str(batch),
    } | more  # fmt: skip


def test_the_loss_is_by_how_much_our_first_was_slower_than_the_best() -> None:
    rows = [row(1), row(2), row(4)]
    predicted, measured = {0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.2, 1: 2.0, 2: 4.0}
    # The first is predicted the fastest; it took 2.2 s where the second took 2.
    assert choice_losses(rows, predicted, measured, JOB) == {"a": [pytest.approx(0.1)]}
    assert shares({"a": [0.1, 0.05], "b": [0.0]}) == (pytest.approx(2 / 3), 3)


def test_two_splits_are_no_sweep_nor_is_one_measured_thrice() -> None:
    times = {0: 1.0, 1: 2.0, 2: 3.0}
    assert choice_losses([row(1), row(2)], {0: 1.0, 1: 2.0}, times, JOB) == {}
    assert choice_losses([row(1), row(1), row(2)], times, times, JOB) == {}


def test_where_activations_wait_is_no_split() -> None:
    # torchtune's table turns offloading on beside full recomputation: two ways to split, not three.
    told = [row(1, activation_recompute=r) for r in ("none", "full", "full + offload")]
    times = {0: 1.0, 1: 2.0, 2: 3.0}
    assert choice_losses(told, times, times, JOB) == {}
    told[2]["activation_recompute"] = "selective"
    assert choice_losses(told, times, times, JOB) == {"a": [0.0]}


def test_batches_are_compared_by_sequence_and_only_where_they_may_differ() -> None:
    # 1 s for 8 sequences is slower than 1.5 s for 16.
    rows = [row(1), row(2), row(4, batch=16)]
    predicted, measured = {0: 1.0, 1: 1.1, 2: 3.0}, {0: 1.0, 1: 1.1, 2: 1.5}
    found = choice_losses(rows, predicted, measured, JOB)
    assert found == {"a": [pytest.approx(1.0 / 8 / (1.5 / 16) - 1)]}
    assert choice_losses(rows, predicted, measured, BATCH) == {}


def test_models_of_one_table_are_compared_by_their_work() -> None:
    # Twice the parameters in less than twice the time: the better of the two.
    rows = [row(1), row(2), row(4, model="n", params_b="2")]
    predicted, measured = {0: 1.0, 1: 1.2, 2: 3.0}, {0: 1.0, 1: 1.2, 2: 1.6}
    assert choice_losses(rows, predicted, measured, TABLE) == {"a": [pytest.approx(0.25)]}
    assert choice_losses(rows, predicted, measured, CLUSTER) == {}


@pytest.mark.parametrize("reading", READINGS)
def test_four_of_five_choices_are_within_a_twentieth_of_the_best(reading: str) -> None:
    rows = rows_of(SHIPPED)
    share, n = shares(choice_losses(rows, *predictions(rows), READINGS[reading]))
    assert n >= 30
    assert share >= 0.8
