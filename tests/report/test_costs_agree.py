"""Page, PDF, CSV, workbook and JSON of the costs agree to the cent."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from engine.assess import assess
from engine.costing.report import cost_report
from engine.costing.view import cash_table
from engine.report.costs_csv import costs_csv
from engine.report.costs_text import costs_json, costs_text
from engine.report.costs_xlsx import costs_xlsx
from engine.report.currency import currency_of
from engine.report.pdf import report as printed
from engine.workload.examples import EXAMPLES
from tests.report.costs_sample import EUROS, NAMES, costs
from tests.report.formulas import Workbook

CENT = 0.005
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("trading-models", EUROS),
]


@pytest.mark.parametrize(("name", "terms"), CASES)
def test_the_total_of_the_way_looked_at_is_the_same_everywhere(
    name: str, terms: dict[str, Any]
) -> None:
    found, answer = costs(name, **terms)
    currency = currency_of(answer.settings.costs)
    way = found.chosen
    assert way.flow is not None
    page = cash_table(way.flow, currency, by_year=False)[-1]

    text = costs_csv(found, answer).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    sums = next(row for row in rows if row["part"] == "Sums" and row["way"] == way.label)
    column = "total USD" if currency.code == "USD" else f"total {currency.code}"
    assert float(sums[column]) == pytest.approx(page.total, abs=CENT)
    for month, amount in enumerate(page.amounts, 1):
        usd = float(sums[f"month {month}"])
        assert currency.of(usd) == pytest.approx(amount, abs=CENT)

    book = Workbook(costs_xlsx(found, answer))
    place = "B" if currency.code == "USD" else "C"
    row = book.find("Summary", "A", "Total")
    assert book.value("Summary", f"{place}{row}") == pytest.approx(page.total, abs=CENT)

    pdf = printed(answer, "", {}, found)["costs"]
    exact = currency.exact(page.total / currency.per_usd)
    assert pdf["flow"][-1][-1] == exact
    assert exact in costs_text(found, answer)

    told = next(w for w in costs_json(found, answer)["ways"] if w["id"] == way.id)
    usd = sum(row["usd_total"] for row in told["table"])
    assert currency.of(usd) == pytest.approx(page.total, abs=CENT)


@pytest.mark.parametrize("name", ["trading-models", "16-nodes-own-or-cloud", "fraud-detection"])
def test_the_recommendations_cost_a_month_is_that_of_the_costs(name: str) -> None:
    found, answer = costs(name)
    assert found.chosen.headline is not None
    assert found.chosen.headline.per_month.likely == pytest.approx(
        answer.best.usd_per_month.likely, abs=CENT
    )


def test_a_quote_that_does_not_rank_is_told_in_every_file() -> None:
    job = EXAMPLES[NAMES[0]].workload.model_copy(update={"quotes": ("h100-sxm:on_demand:1.2",)})
    answer = assess(job)
    found = cost_report(answer)
    (told,) = found.quotes_left_out
    assert told.startswith("Your quote for h100-sxm, on demand at $1.20 an hour, is left out")
    assert told in " ".join(costs_text(found, answer).split())
    assert told in costs_csv(found, answer).decode("utf-8-sig").replace('""', '"')
    assert costs_json(found, answer)["quotes_left_out"] == [told]
    assert told in printed(answer, "", {}, found)["costs"]["notes"]
    assert Workbook(costs_xlsx(found, answer)).value("Prices", "A3") == told
