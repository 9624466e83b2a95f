"""The serving plan as one tidy table, for a spreadsheet: every figure of the page with its unit."""

from __future__ import annotations

from collections.abc import Iterator

from engine.estimate.serving_plan import ServingOption
from engine.estimate.serving_unbatched import unbatched, usd_per_thousand_requests
from engine.explain.serving import ServingReport
from engine.explain.serving_words import RESOLVED, quality, refusal
from engine.report.table import Row, csv_of
from engine.wording import number


def serving_csv(report: ServingReport, link: str = "") -> bytes:
    """The table as CSV; see `csv_of`."""
    return csv_of(serving_rows(report, link))


def serving_rows(report: ServingReport, link: str = "") -> Iterator[Row]:
    """All rows: what was asked, the plan, its hours, the alternatives, APIs, cold starts."""
    answer = report.answer
    yield Row("Serving plan", answer.message)
    for note in (*answer.notes, *report.notes):
        yield Row("Serving plan", note)
    for r in report.resolved:
        yield Row("Asked", RESOLVED[r.name], None, r.value, None, r.unit, r.source)
    if report.chosen is not None:
        yield from _plan("Plan chosen", report.chosen)
        yield from _batches(report, report.chosen)
        yield from _hours(report.chosen)
        for item in report.chosen.memory:
            yield Row("Memory of the fullest device", item.name, None, item.gib, None, "GiB")
        yield Row(
            "Memory of the fullest device", "to be had", None, report.chosen.memory_limit_gib,
            None, "GiB",
        )  # fmt: skip
    for option in answer.options:
        yield from _plan(f"Option {option.id}", option)
    for refused in answer.refused:
        yield Row("Ruled out", f"{refused.machine.label}: {refusal(refused, report)}")
    for q in report.quantisation:
        if q.option is not None:
            usd = q.option.usd_per_month
            yield Row(f"Weights in {q.bits:g} bits", f"{q.option.id}; {quality(q.bits)}", usd.low,
                      usd.likely, usd.high, usd.unit)  # fmt: skip
        else:
            yield Row(f"Weights in {q.bits:g} bits", q.message)
    yield from _apart(report)
    for p in report.frontier:
        name = f"{p.candidate.machine.label} at {number(p.tpot_s * 1e3)} ms a token"
        yield Row("Frontier", name, None, p.usd_per_month, None, "USD/month")
    for b in (*report.apis, *report.other_apis):
        told = f"{b.offer.source}, {b.offer.as_of.isoformat()}"
        yield Row("API", f"{b.offer.id}: this load", None, b.usd_per_month, None, "USD/month", told)
        yield Row("API", f"{b.offer.id}: a million tokens in", None, b.offer.usd_per_million_in,
                  None, "USD", told)  # fmt: skip
        yield Row("API", f"{b.offer.id}: a million tokens out", None, b.offer.usd_per_million_out,
                  None, "USD", told)  # fmt: skip
        if b.wins_from_per_s is not None:
            yield Row("API", f"{b.offer.id}: hosting wins from", None, b.wins_from_per_s, None,
                      "requests/s", told)  # fmt: skip
    for z in report.zero:
        s = z.start.seconds
        yield Row("Cold start", z.start.title, s.low, s.likely, s.high, "s", "; ".join(s.sources))
        yield Row("Scaling to zero", f"{z.start.title}: requests that meet a start", None,
                  z.result.cold_share, None, "share")  # fmt: skip
        yield Row("Scaling to zero", f"{z.start.title}: cost", None, z.usd_per_month, None,
                  "USD/month")  # fmt: skip
    if link:
        yield Row("Link", link)


def _plan(section: str, o: ServingOption) -> Iterator[Row]:
    machine, usd, seen = o.candidate.machine, o.usd_per_month, o.at_peak
    price, carried = machine.usd_per_unit_hour, o.candidate.capacity.requests
    tag = machine.price
    told = [tag.provider, tag.region, tag.as_of.isoformat() if tag.as_of is not None else ""]
    yield Row(section, "Cost", usd.low, usd.likely, usd.high, usd.unit)
    yield Row(section, "Cost, machines kept all day", None, o.usd_always_on, None, "USD/month")
    yield Row(section, "Cost, machines by the hour", None, o.usd_by_hour, None, "USD/month")
    yield Row(section, "A million tokens in", None, o.usd_per_million_in, None, "USD")
    yield Row(section, "A million tokens out", None, o.usd_per_million_out, None, "USD")
    yield Row(section, f"Price of {machine.name}, each", price.low, price.likely, price.high,
              price.unit, f"{', '.join(x for x in told if x)}: {tag.source}")  # fmt: skip
    yield Row(section, f"Machines: {machine.label}", None, float(o.machines), None, "machines")
    yield Row(section, "Replicas at the peak", None, float(o.replicas), None, "replicas")
    yield Row(section, "GPUs of a replica", None, float(o.candidate.layout.gpus), None, "devices")
    yield Row(section, "One replica carries", carried.low, carried.likely, carried.high,
              carried.unit, "; ".join(carried.sources))  # fmt: skip
    yield Row(section, "Answers at once in a replica", None, seen.batch, None, "answers")
    yield Row(section, "First token, mean", None, seen.ttft_mean_s, None, "s")
    yield Row(section, "First token, as promised", None, seen.ttft_target_s, None, "s")
    yield Row(section, "First token, 99 of 100", None, seen.ttft_p99_s, None, "s")
    yield Row(section, "Per token, mean", None, seen.tpot_mean_s, None, "s")
    yield Row(section, "Per token, 99 of 100", None, seen.tpot_p99_s, None, "s")
    yield Row(section, "Utilization over the day", None, o.utilization, None, "share")


def _batches(report: ServingReport, o: ServingOption) -> Iterator[Row]:
    """A thousand requests, and the plan's machines with one answer at a time in a replica."""
    yield Row("Plan chosen", "A thousand requests", None,
              usd_per_thousand_requests(o, report.ask), None, "USD")  # fmt: skip
    found = unbatched(o, report.ask)
    if found is None:
        return
    section = "Without batches"
    yield Row(section, "One request alone", None, found.answer_s, None, "s")
    yield Row(section, "Replicas at the peak", None, float(found.replicas), None, "replicas")
    yield Row(section, "Machines", None, float(found.machines), None, "machines")
    yield Row(section, "Cost", None, found.usd_per_month, None, "USD/month")


def _apart(report: ServingReport) -> Iterator[Row]:
    """Prefill and decoding on replicas of their own."""
    found, section = report.apart, "Prefill and decoding apart"
    if found is None:
        return
    experts = report.ask.shape.is_moe
    for name, layout, count in (
        ("Prefill", found.prefill, found.prefill_replicas),
        ("Decoding", found.decode, found.decode_replicas),
    ):
        yield Row(section, f"{name}: {layout.told(experts)}", None, float(count), None, "replicas")
    yield Row(section, "Machines", None, float(found.machines), None, "machines")
    yield Row(section, "Cost", None, found.usd_per_month, None, "USD/month")
    yield Row(section, "First token, as promised", None, found.ttft_s, None, "s")
    yield Row(section, "Handover", None, found.handover_s, None, "s")
    yield Row(section, "Per token, mean", None, found.tpot_s, None, "s")


def _hours(o: ServingOption) -> Iterator[Row]:
    for h in o.hours:
        at = f"{h.hour:02d}:00"
        yield Row("Hour of the day", f"{at} rate", None, h.rate, None, "requests/s")
        yield Row("Hour of the day", f"{at} machines", None, float(h.machines), None, "machines")
        yield Row("Hour of the day", f"{at} cost", None, h.usd, None, "USD")
