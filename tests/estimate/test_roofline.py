"""The roofline against datasheet arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InputError
from engine.estimate.roofline import attainable_flops, bottleneck, ridge_point, time_shares


def test_h100_ridge_and_both_sides_of_it() -> None:
    # 989 TFLOPS over 3.35 TB/s = 295 FLOP per byte
    assert ridge_point(989e12, 3.35e12) == pytest.approx(295, abs=1)
    assert attainable_flops(2.0, 989e12, 3.35e12) == 6.7e12
    assert attainable_flops(1000.0, 989e12, 3.35e12) == 989e12
    assert np.allclose(attainable_flops(np.array([2.0, 1000.0]), 989e12, 3.35e12), [6.7e12, 989e12])


def test_the_largest_share_is_the_bottleneck() -> None:
    seconds = {"compute": 3.0, "network": 5.0, "disk": 2.0}
    assert time_shares(seconds) == {"compute": 0.3, "network": 0.5, "disk": 0.2}
    assert bottleneck(seconds) == ("network", 0.5)


@pytest.mark.parametrize("seconds", [{"compute": -1.0}, {"compute": 0.0}, {}])
def test_senseless_times_are_refused(seconds: dict[str, float]) -> None:
    with pytest.raises(InputError):
        bottleneck(seconds)


def test_no_bandwidth_is_refused() -> None:
    with pytest.raises(InputError, match="bandwidth"):
        ridge_point(1e12, 0.0)
