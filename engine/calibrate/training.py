"""Fit the parameters of the step model to published rows, and say how far it is off.

Families of sources weigh alike however many rows they have; parameters are held near a prior and
each source's own level near none, so that a family that is left out is predicted by physics and
not by a lucky coefficient. Run `python -m engine.calibrate.training [rows.csv]`; the result is
one file, `data/calibration_training.csv`.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from engine.calibrate.training_knobs import KNOBS
from engine.calibrate.training_rows import Cells, Reading, read, stack_inputs
from engine.estimate.collectives import Array
from engine.estimate.training import LEGACY, PLAIN, STACKS, TUNED, StepInputs, step_time
from engine.estimate.training_calibration import CALIBRATION, trust

ROWS = CALIBRATION.parent / "measured_training.csv"
SCALE = 0.06  # of one residual, in logs: repeated measurements differ by 1 to 9%
TAIL = 2.0  # residuals beyond this many scales count less and less (Cauchy)
# These three were chosen by leaving families out: looser knobs, tighter sources and older rows at
# full weight take the median of dense rows from 8.3% to 6.6%, of rows with experts from 11% to 9%.
FREEDOM = 2.0  # of every knob, on its own
SOURCE_SD = 0.05  # of a source's own level
OLDER_WEIGHT = 1.0  # of a row that a later release of its table replaced
MOST_ROWS = 240  # of one family in a fit: vTrain has 1,440 of one small sweep
FEW_ROWS = 3  # below them a source's own level is a hint, not knowledge
STEP_OF_RUN = 0.9  # step time against the average of a whole run (BLOOM)

_FAMILIES: tuple[tuple[str, str], ...] = (
    ("vtrain", "vtrain"), ("llmfoundry-a100", "llm-foundry A100"),
    ("llmfoundry-h100", "llm-foundry H100"), ("nvidia-mbridge-llama3", "Megatron-Bridge Llama"),
    ("nvidia-mbridge", "Megatron-Bridge MoE"), ("nemotron4.*paper", "Nemotron-4 papers"),
    ("megatron21", "Megatron 2021"), ("mtnlg|opt175b|gptneox|bloom", "other runs before 2023"),
)  # fmt: skip


def family_of(group: str, moe: bool) -> str:
    """Source family of a group of rows: what is left out together."""
    for pattern, name in _FAMILIES:
        if re.search(pattern, group):
            return name
    return f"{group} MoE" if moe and group == "simumax-b200" else group


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows ready to be fitted: inputs, log of the measured seconds, weight, source, family."""

    inputs: StepInputs
    log_seconds: Array
    older: NDArray[np.bool_]
    moe: NDArray[np.bool_]
    sources: NDArray[np.str_]
    families: NDArray[np.str_]
    groups: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.log_seconds)

    def take(self, rows: NDArray[np.intp]) -> Sample:
        """Some of the rows."""
        inputs = StepInputs(
            **{f.name: getattr(self.inputs, f.name)[rows] for f in fields(StepInputs)}
        )
        rest = (getattr(self, f.name)[rows] for f in fields(Sample)[1:])
        return Sample(inputs, *rest)


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted values by name, their standard errors, and levels of sources (logs)."""

    values: Array
    errors: Array
    levels: dict[str, float]

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters as the step model takes them."""
        names = zip(KNOBS.items(), self.values, strict=True)
        return {name: v if k.linear else float(np.exp(v)) for (name, k), v in names} | {
            "level_tuned": 1.0
        }


def sample_of(rows: Sequence[Cells]) -> Sample:
    """All rows that can be predicted; replaced ones too, they show what age does."""
    kept: list[tuple[Cells, Reading, bool]] = []
    for cells in rows:
        older = str(cells.get("superseded") or "").lower().startswith("yes")
        known = dict(cells) | {"superseded": ""}
        scale = 1.0
        if cells.get("group") == "bloom":
            # The only public figure of its stack beside MT-NLG: a whole run, with restarts.
            known |= {"tps_basis": "", "framework": "Megatron-DeepSpeed"}
            scale = STEP_OF_RUN
        reading = read(known)
        if reading.values is not None:
            kept.append((cells, reading, older))
            if scale != 1.0:
                seconds = reading.measured_s * scale
                kept[-1] = (cells, _measured(reading, seconds), older)
    readings = [r for _, r, _ in kept]
    moe = np.array([r.moe for r in readings])
    groups = [str(c.get("group") or "") for c, _, _ in kept]
    return Sample(
        stack_inputs(readings),
        np.log([r.measured_s for r in readings]),
        np.array([o for _, _, o in kept]),
        moe,
        np.array([r.source for r in readings]),
        np.array([family_of(g, m) for g, m in zip(groups, moe, strict=True)]),
        np.array(groups),
    )


def _measured(reading: Reading, seconds: float) -> Reading:
    changed = {f.name: getattr(reading, f.name) for f in fields(Reading)}
    return Reading(**(changed | {"measured_s": seconds}))


def _weights(s: Sample) -> Array:
    """Weight of a row: the square root of its family's size shared among its rows."""
    count = Counter(s.families)
    weight = np.array([count[f] ** -0.5 for f in s.families])
    return np.where(s.older, OLDER_WEIGHT * weight, weight)


def _thinned(s: Sample) -> Sample:
    """The sample with large families drawn down; two thirds of the draw are not launch-bound."""
    rng = np.random.default_rng(0)
    keep = np.ones(len(s), dtype=bool)
    for family, n in Counter(s.families).items():
        if n <= MOST_ROWS:
            continue
        rows = np.flatnonzero(s.families == family)
        large = s.inputs.micro_batch[rows] >= 4
        parts = ((rows[large], 2 * MOST_ROWS // 3), (rows[~large], MOST_ROWS // 3))
        drawn = [rng.choice(p, min(k, len(p)), replace=False) for p, k in parts]
        keep[rows] = False
        keep[np.concatenate(drawn)] = True
    return s.take(np.flatnonzero(keep))


def fit(sample: Sample, start: Fit | None = None, evaluations: int = 30) -> Fit:
    """Parameters and levels of sources that agree best with the rows."""
    s = _thinned(sample)
    knobs = list(KNOBS.values())
    mean = np.array([k.prior if k.linear else np.log(k.prior) for k in knobs])
    freedom = FREEDOM * np.array([k.freedom for k in knobs])
    sources = sorted(set(s.sources) - {""})
    place = {name: i for i, name in enumerate(sources)}
    column = np.array([place.get(name, -1) for name in s.sources])
    weight = np.sqrt(_weights(s))
    n = len(knobs)

    def residuals(x: Array) -> Array:
        s.inputs.offset = np.append(x[n:], 0.0)[column]
        seconds = step_time(s.inputs, Fit(x[:n], x[:n], {}).parameters).total
        e = (np.log(seconds) - s.log_seconds) / SCALE
        robust = np.sign(e) * TAIL * np.sqrt(np.log1p((e / TAIL) ** 2))
        return np.concatenate([weight * robust, (x[:n] - mean) / freedom, x[n:] / SOURCE_SD])

    def jacobian(x: Array) -> Array:
        base, step = residuals(x), 1e-4
        columns = []
        for i in range(len(x)):
            moved = x.copy()
            moved[i] += step
            columns.append((residuals(moved) - base) / step)
        return np.array(columns).T

    first = np.concatenate([mean, np.zeros(len(sources))])
    if start is not None:
        first = np.concatenate([start.values, [start.levels.get(k, 0.0) for k in sources]])
    found = least_squares(
        residuals, first, jac=jacobian, max_nfev=evaluations, ftol=1e-5, xtol=1e-5
    )
    slopes = jacobian(found.x)
    spread = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
    levels = dict(zip(sources, found.x[n:].tolist(), strict=True))
    return Fit(found.x[:n], spread[:n], levels)


def log_errors(sample: Sample, rows: NDArray[np.intp], fitted: Fit) -> Array:
    """Log of predicted over measured."""
    part = sample.take(rows)
    part.inputs.offset = np.array([fitted.levels.get(k, 0.0) for k in part.sources])
    return np.asarray(np.log(step_time(part.inputs, fitted.parameters).total) - part.log_seconds)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Errors of rows of families that the fit had not seen; `known`: a sibling's level helped."""

    errors: Array
    families: NDArray[np.str_]
    moe: NDArray[np.bool_]
    known: NDArray[np.bool_]
    stacks: NDArray[np.str_]  # rows of one group, chip, width and way of sharding
    stack: NDArray[np.int_]
    bits: Array

    def after_one(self) -> tuple[float, float]:
        """Median error and log half width of 80% when one row of the same stack is measured.

        Every row of a stack in turn stands for the measured one; the median of stacks.
        """
        medians, widths = [], []
        for stack, n in sorted(Counter(self.stacks).items()):
            if n < 3:
                continue
            e = self.errors[self.stacks == stack]
            rest = np.abs(e[:, None] - (trust(e) * e)[None, :])[~np.eye(n, dtype=bool)]
            medians.append(np.median(np.expm1(rest)))
            widths.append(np.quantile(rest, 0.8))
        return float(np.median(medians)), float(np.mean(widths))

    def family_medians(self) -> Array:
        """Median error of each family with at least three rows, as fractions."""
        ape = np.abs(np.expm1(self.errors))
        return np.array(
            [
                np.median(ape[self.families == f])
                for f, n in sorted(Counter(self.families).items())
                if n >= 3
            ]
        )

    def half_width(
        self, rows: NDArray[np.bool_], share: float = 0.8, *, power: float = 0.5
    ) -> float:
        """Log half width that holds a share of the rows.

        power : of a family's size over which its rows share their weight; 1: all families alike
        """
        size = np.abs(self.errors[rows])
        count = Counter(self.families[rows])
        weight = np.array([count[f] ** -power for f in self.families[rows]])
        order = np.argsort(size)
        reached = np.cumsum(weight[order]) / weight.sum()
        return float(np.interp(share, reached, size[order]))


def leave_families_out(sample: Sample, full: Fit, evaluations: int = 6) -> LeftOut:
    """Every family in turn predicted by a fit to the others."""
    parts = []
    for family in sorted(set(sample.families)):
        held = np.flatnonzero((sample.families == family) & ~sample.older)
        if len(held) == 0:
            continue
        rest = sample.take(np.flatnonzero(sample.families != family))
        fitted = fit(rest, full, evaluations)
        known = np.array([s in fitted.levels for s in sample.sources[held]])
        parts.append((log_errors(sample, held, fitted), held, known))
    rows = np.concatenate([held for _, held, _ in parts])
    return LeftOut(
        np.concatenate([e for e, _, _ in parts]), sample.families[rows], sample.moe[rows],
        np.concatenate([k for _, _, k in parts]), _stacks(sample)[rows],
        sample.inputs.stack[rows], 8 * sample.inputs.width[rows],
    )  # fmt: skip


def _stacks(s: Sample) -> NDArray[np.str_]:
    i = s.inputs
    keys = zip(s.groups, s.sources, i.peak_class, i.full_shard, i.lora, strict=True)
    return np.array(["|".join(str(part) for part in key) for key in keys])


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a table of measurements."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def calibrate(path: Path = ROWS, out: Path = CALIBRATION) -> LeftOut:
    """Fit, leave out, and write the calibration file."""
    sample = sample_of(read_rows(path))
    full = fit(sample)
    left = leave_families_out(sample, full)
    _write(out, sample, full, left)
    return left


def _write(out: Path, sample: Sample, full: Fit, left: LeftOut) -> None:
    today = date.today().isoformat()
    table = [("id", "value", "low", "high", "unit", "description", "source", "as_of", "confidence")]
    rows = f"{len(sample)} rows of {len(set(sample.families))} families, measured_training.csv"

    def add(
        name: str, value: float, low: float, high: float, unit: str, what: str, of: str,
        sure: str = "medium",
    ) -> None:  # fmt: skip
        numbers = (f"{value:.6g}", f"{low:.6g}", f"{high:.6g}")
        table.append((name, *numbers, unit, what, of, today, sure))

    for (name, knob), x, error in zip(KNOBS.items(), full.values, full.errors, strict=True):
        ends = [x, x - 1.28 * error, x + 1.28 * error]
        value, low, high = ends if knob.linear else np.exp(ends)
        add(f"parameter.{name}", value, low, high, knob.unit, knob.meaning, rows)
    add(
        "parameter.level_tuned", 1, 1, 1, "times", "time of a vendor's recipes: the reference", rows
    )
    for name, level in sorted(full.levels.items()):
        n = int(np.sum(sample.sources == name))
        spread = 1.28 * SOURCE_SD / np.sqrt(1 + n**0.5)
        what = f"own level of {name}"
        sure = "medium" if n >= FEW_ROWS else "low"
        add(f"offset.{name}", level, level - spread, level + spread, "log", what, f"{n} rows", sure)
    for name, (value, what) in _widths(left).items():
        add(f"width.{name}", value, value * 0.8, value * 1.3, "log", what, "left-out families")
    for name, (value, what) in _figures(sample, left).items():
        add(f"figure.{name}", value, value, value, "fraction", what, "left-out families")
    with out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


def _widths(left: LeftOut) -> dict[str, tuple[float, str]]:
    """Half widths of the 80% interval by kind and by whether the software is known."""
    found: dict[str, float] = {}
    for kind, rows in (("dense", ~left.moe), ("moe", left.moe)):
        siblings = left.half_width(rows & left.known)
        # Code that no row is of is one more draw among families, not among rows; that a sibling's
        # level was known helped none of them.
        strangers = max(left.half_width(rows & ~left.known), left.half_width(rows, power=1.0))
        by_row = float(np.quantile(np.abs(left.errors[rows]), 0.8))
        # Fewer rows have a sibling than have none: theirs is never wider than all rows'.
        found[f"{kind}_known"] = min(siblings, by_row)
        found[f"{kind}_unseen"] = max(strangers, found[f"{kind}_known"])
    what = "half width of the 80% interval"
    told = {k: (v, f"{what}, {k.replace('_', ', ')} software") for k, v in found.items()}
    told["measured"] = (left.after_one()[1], f"{what}, after one measured step of the same stack")
    told["uncalibrated_factor"] = (2.0, "widening for hardware without rows")
    return told


def _figures(sample: Sample, left: LeftOut) -> dict[str, tuple[float, str]]:
    ape = np.abs(np.expm1(left.errors))
    rows = left.families != "vtrain"  # one small sweep, counted as a family but not by its rows
    dense, moe = rows & ~left.moe, left.moe
    megatron = dense & np.isin(left.stack, (TUNED, PLAIN, LEGACY)) & (left.bits == 16)
    inside = np.abs(left.errors) <= _half_widths(left)
    return {
        "family_median": (float(np.median(left.family_medians())), "median of family medians"),
        "row_median": (float(np.median(ape[rows])), "median of rows"),
        "row_p90": (float(np.quantile(ape[rows], 0.9)), "90th percentile of rows"),
        "dense_median": (float(np.median(ape[dense])), "median of dense rows"),
        "dense_p90": (float(np.quantile(ape[dense], 0.9)), "90th percentile of dense rows"),
        "moe_median": (float(np.median(ape[moe])), "median of rows with experts"),
        "moe_p90": (float(np.quantile(ape[moe], 0.9)), "90th percentile of rows with experts"),
        "megatron_median": (float(np.median(ape[megatron])),
                            "median of dense 16-bit rows of Megatron-type code"),
        "within_20": (float(np.mean(ape[rows] <= 0.2)), "share of rows within 20%"),
        "coverage_80": (float(np.mean(inside[rows])), "share of rows inside the 80% interval"),
        "after_one_median": (left.after_one()[0], "median after one measured step of the stack"),
    } | {
        f"newest_year_{name}": (
            float(sample.inputs.year[sample.inputs.stack == k].max()),
            f"newest software in the rows: {name}",
        )
        for k, name in enumerate(STACKS)
    }  # fmt: skip


def _half_widths(left: LeftOut) -> Array:
    """Log half width that each left-out row would have been given."""
    w = {name: value for name, (value, _) in _widths(left).items()}
    dense = np.where(left.known, w["dense_known"], w["dense_unseen"])
    moe = np.where(left.known, w["moe_known"], w["moe_unseen"])
    return np.asarray(np.where(left.moe, moe, dense))


def main(arguments: Sequence[str]) -> int:
    """Calibrate and print the figures of what was left out."""
    left = calibrate(Path(arguments[0]) if arguments else ROWS)
    ape = np.abs(np.expm1(left.errors))
    for family in sorted(set(left.families)):
        part = ape[left.families == family]
        print(f"{family:28s} {len(part):5d} {np.median(part):7.1%} {np.quantile(part, 0.9):7.1%}")
    print(f"median of family medians {np.median(left.family_medians()):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
