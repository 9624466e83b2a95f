"""Server time of a rerun of each page, warm, beside that of a page with a line of text.

The page's script runs in Streamlit's own test runner: what a rerun costs the server without the
network and the browser.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from engine.report.link import encode
from engine.workload.examples import example

NAME = "Rerun of each page, warm median (goal 100 ms)"
ROOT = Path(__file__).resolve().parents[1]
RUNS = 7


def _median_rerun(test: AppTest) -> float:
    test.run(timeout=60)
    test.run(timeout=60)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        test.run(timeout=60)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def run() -> None:
    """Print the median of every page with a full example loaded."""
    empty = AppTest.from_string("import streamlit as st\nst.write('A line of text')")
    print(f"  {'an empty page':24s} {_median_rerun(empty):7.1f} ms")
    link = encode(example("fraud-detection").workload)
    pages = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("pages/*.py"))
    for page in ["app.py", *pages]:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for key, value in link.items():
            test.query_params[key] = value
        test.run(timeout=60)
        if page != "app.py":
            test.switch_page(page)
        print(f"  {page:24s} {_median_rerun(test):7.1f} ms")
