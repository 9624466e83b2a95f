"""The serving plan as a document: the figures of its page, from the same report."""

from __future__ import annotations

from engine.cost.api_prices import Buying
from engine.estimate.serving_layouts import Machine, PriceTag
from engine.estimate.serving_plan import ServingOption
from engine.explain import serving_pictures as pictures
from engine.explain import serving_words as said
from engine.explain.serving import COMMITTED, ServingReport
from engine.explain.serving_table import serving_rows
from engine.report import plan_charts as charts
from engine.report import words
from engine.report.link import query_string
from engine.report.plan import (
    Cell,
    Column,
    Figure,
    Figures,
    Plan,
    Price,
    Section,
    Table,
    Tile,
    Words,
    age_cell,
    each_once,
    more,
    price_section,
    sentence,
    span,
)
from engine.workload.answers import Kind, ModelClass
from engine.workload.settings import Settings
from engine.workload.workload import Workload

SAME = 1e-6  # share by which a price may differ from itself
SHOWN, REFUSED = 10, 6  # rows of machines and offers, and of machines that can't
RESTS_ON = (
    "GPU capacity: formulae fitted to public serving runs, checked against event simulation. CPU "
    "capacity: shares of bandwidth and peak from published runs, within a factor of three. Prices "
    "are list prices of the second cheapest provider, with the first and third as their range; "
    "egress and storage are small for text and left out."
)


def serving_document(
    report: ServingReport, workload: Workload, settings: Settings, link: str = ""
) -> Plan:
    """The page of the serving plan as a document.

    workload, settings : those that the report is of, for the name and the link
    """
    planned = report.chosen if report.answer.state == "plan" else None
    prices = _prices(report)
    sections = [
        *(_behaviour(report, planned) if planned is not None else ()),
        *(_machines(report, planned) if planned is not None else ()),
        *_refused(report),
        *_apis(report),
        *(_beside(report, planned) if planned is not None else ()),
        *_grounds(report, prices),
    ]
    hardware = planned.candidate.machine.hardware if planned is not None else "gpu"
    doubt = said.doubtful(planned) if planned is not None else ""
    return Plan(
        schema="serving",
        kind="Serving plan",
        name=words.one_line(workload.name),
        verdict=sentence(said.headline(report)),
        lead=_lead(report, planned),
        colour="CPU" if hardware == "cpu" else "GPU",
        tiles=_tiles(report, planned) if planned is not None else (),
        warnings=tuple(
            sentence(text)
            for text in (_other_kind(workload), doubt, *report.answer.notes, *report.notes)
            if text
        ),
        sections=tuple(sections),
        prices=prices,
        today=report.today,
        query=query_string(workload, settings=settings),
        link=link,
        rows=tuple(serving_rows(report, link)),
    )


def _other_kind(workload: Workload) -> str:
    """Words where the job itself is no language model that answers requests."""
    served = workload.kind is Kind.online_inference and workload.model_class is ModelClass.llm
    return (
        ""
        if served
        else (
            "Your job is of another kind. What stands here is a plan for serving a language model "
            "beside it; sizes and rates that you told count."
        )
    )


def _lead(report: ServingReport, planned: ServingOption | None) -> tuple[str, ...]:
    if planned is None:
        return ()
    return said.what_runs(report, planned), sentence(_price_said(planned, report))


def _price_said(option: ServingOption, report: ServingReport) -> str:
    machine = option.candidate.machine
    tag = machine.price
    if tag.as_of is None:  # what capital, power, space and staff come to
        hour = words.money(machine.usd_per_unit_hour.likely)
        return f"{hour} an hour a {_unit(machine)}, {words.terms(tag.terms)}"
    read = f", read {words.day(tag.as_of)} ({words.age(tag.age_days)})"
    return (
        f"{words.money(machine.usd_per_unit_hour.likely)} an hour a {_unit(machine)}, "
        f"{tag.provider}, {words.terms(tag.terms)}{read}"
    )


def _unit(machine: Machine) -> str:
    return "GPU" if machine.hardware == "gpu" else "server"


def _tiles(report: ServingReport, option: ServingOption) -> tuple[Tile, ...]:
    usd, seen = option.usd_per_month, option.at_peak
    of100 = f"{report.ask.targets.percentile * 100:g} of 100"
    return (
        Tile("A month", words.money(usd.likely), span(usd)),
        Tile(f"First token, {of100}", said.seconds(seen.ttft_target_s),
             f"99 of 100: {said.seconds(seen.ttft_p99_s)}"),
        Tile("Each further token", said.seconds(seen.tpot_mean_s),
             f"99 of 100: {said.seconds(seen.tpot_p99_s)}"),
        Tile("A million tokens written", words.money(option.usd_per_million_out),
             f"read: {words.money(option.usd_per_million_in)}"),
    )  # fmt: skip


def _behaviour(report: ServingReport, option: ServingOption) -> tuple[Section, ...]:
    """Latencies against load, the day, dollars against latency."""
    day = pictures.day_picture(option, report.pay in COMMITTED)
    found = [
        Figure(c.title, c.message, f"{c.title}. {c.message}", charts.load(c))
        for c in pictures.load_curves(report, option)
    ]
    found.append(Figure(day.title, day.message, f"{day.title}. {day.message}", charts.day(day)))
    front = pictures.frontier_picture(report, option)
    if front is not None:
        alt = f"{front.title}. {front.message}"
        found.append(Figure(front.title, front.message, alt, charts.frontier(front)))
    return (Section("How it behaves", (Figures(tuple(found)),)),)


def _machines(report: ServingReport, chosen: ServingOption) -> tuple[Section, ...]:
    gpu, cpu = pictures.side_by_side(report.answer)
    named = [("GPU", gpu), ("CPU", cpu)]
    columns = (Column("", 0.7), *(Column(title, 1.6) for title, _ in named))
    rows = [
        (title, *(_of(o, report, title, name.lower()) for name, o in named))
        for title in (
            "Machines",
            "A month",
            "1,000 requests",
            "First token",
            "Further token",
            "Without batches",
            "One carries",
            "Price",
        )
    ]
    found = report.answer.options
    shown = [o for i, o in enumerate(found) if i < SHOWN or o.id == chosen.id]
    table = Table(
        (Column("Machines", 3.0), Column("A month", 1.0, "figure"), Column("Range", 1.9, "figure"),
         Column("First token", 1.0, "figure"), Column("Per token", 0.95, "figure"),
         Column("Price read on", 1.3)),
        tuple(_option(o, o.id == chosen.id, report) for o in shown),
        f"At the peak of the day, cheapest first. {more(len(found) - len(shown), 'machines')}",
    )  # fmt: skip
    return (
        Section(said.gpu_or_cpu(gpu, cpu), (Table(columns, tuple(rows)),)),
        Section("All machines that meet the targets", (table,)),
    )


def _of(option: ServingOption | None, report: ServingReport, title: str, hardware: str) -> str:
    if option is None:
        return _nearest(report, hardware) if title == "Machines" else "–"
    seen, c = option.at_peak, option.candidate
    return {
        "Machines": said.machines(option.machines, c.machine.label),
        "A month": f"{words.money(option.usd_per_month.likely)} ({span(option.usd_per_month)})",
        "1,000 requests": said.thousand(option, report),
        "First token": said.seconds(seen.ttft_target_s),
        "Further token": said.seconds(seen.tpot_mean_s),
        "Without batches": said.without_batches(option, report),
        "One carries": said.per_second(float(c.capacity.requests_per_s)),
        "Price": _price_said(option, report),
    }[title]


def _nearest(report: ServingReport, hardware: str) -> str:
    """What the best of a kind would do, where none meets the targets."""
    refused = [r for r in report.answer.refused if r.machine.hardware == hardware]
    if not refused:
        return "None is offered on these terms."
    fitting = [r for r in refused if r.floor != "memory"]
    best = min(fitting or refused, key=lambda r: (r.ttft_floor_s, r.tpot_floor_s))
    return f"{best.machine.label}: {said.refusal(best, report)}."


def _option(o: ServingOption, chosen: bool, report: ServingReport) -> tuple[str | Cell, ...]:
    tag, seen = o.candidate.machine.price, o.at_peak
    return (
        Cell(said.machines(o.machines, o.candidate.machine.label), "strong" if chosen else "",
             o.candidate.layout.told(report.ask.shape.is_moe)),
        words.money(o.usd_per_month.likely),
        span(o.usd_per_month),
        said.seconds(seen.ttft_target_s),
        said.seconds(seen.tpot_mean_s),
        age_cell(tag.as_of, tag.age_days, tag.freshness),
    )  # fmt: skip


def _refused(report: ServingReport) -> tuple[Section, ...]:
    # What has room for the model and is too slow tells more than what has none.
    found = sorted(report.answer.refused, key=lambda r: r.floor == "memory")
    if not found:
        return ()
    rows = tuple((r.machine.label, said.refusal(r, report)) for r in found[:REFUSED])
    table = Table((Column("Machine", 1.0), Column("Why", 3.6)), rows,
                  more(len(found) - REFUSED, "machines"))  # fmt: skip
    return (
        Section(
            "Machines that can't serve this, and why", (table,), 2 if report.answer.options else 1
        ),
    )


def _apis(report: ServingReport) -> tuple[Section, ...]:
    """Buying the same tokens, with the day of each price."""
    parts: list[Words | Table] = [Words((said.api_message(report),))]
    if report.apis:
        parts.append(_offers(report.apis, report, wins=True))
    else:
        others = report.other_apis[:SHOWN]
        parts.append(_offers(others, report, wins=False, left=len(report.other_apis) - SHOWN))
    return (Section(said.api_title(report), tuple(parts)),)


def _offers(
    offers: tuple[Buying, ...], report: ServingReport, *, wins: bool, left: int = 0
) -> Table:
    columns = [
        Column("Offer", 2.6), Column("Million in, out", 1.4, "figure"),
        Column("A month", 1.0, "figure"), Column("Hosting wins from", 1.4, "figure"),
        Column("Read on", 1.5), Column("Source", 0.7, "source"),
    ]  # fmt: skip
    rows = [
        (
            f"{b.offer.provider}, {b.offer.model}",
            f"{words.money(b.offer.usd_per_million_in)}, "
            f"{words.money(b.offer.usd_per_million_out)}",
            words.money(b.usd_per_month),
            said.wins_from(b) if wins and report.answer.candidates else "–",
            age_cell(b.offer.as_of, b.offer.age_days(report.today),
                     b.offer.freshness(report.today)),
            b.offer.source,
        )
        for b in offers
    ]  # fmt: skip
    caption = f"List prices for this load, cheapest first. {more(left, 'offers')}"
    return Table(tuple(columns), tuple(rows), caption)


def _beside(report: ServingReport, option: ServingOption) -> tuple[Section, ...]:
    """Precision, memory, prompts apart, scaling to zero."""
    bits = Table(
        (Column("Weights", 0.9), Column("Cheapest", 1.6), Column("A month", 0.9, "figure"),
         Column("Answers", 4.0)),
        tuple(
            (
                Cell(f"{row.bits:g} bits", "strong" if row.chosen else "",
                     "yours" if row.chosen else ""),
                said.quantised(row),
                words.money(row.option.usd_per_month.likely) if row.option else "",
                said.quality(row.bits),
            )
            for row in report.quantisation
        ),
    )  # fmt: skip
    total = sum(item.gib for item in option.memory)
    memory = Table(
        (Column("Part", 3.0), Column("GiB", 1.0, "figure")),
        (
            *((item.name, f"{item.gib:,.1f}") for item in option.memory),
            (Cell("Together", "strong"), f"{total:,.1f} of {option.memory_limit_gib:,.1f}"),
        ),
        "A tenth of each device is left free. There is room for "
        f"{option.candidate.capacity.max_batch:,.0f} answers at once in a replica.",
    )
    zero = Table(
        (Column("A replica starts from", 1.5), Column("Takes", 0.8, "figure"),
         Column("Wait for it", 0.9, "figure"), Column("A month", 0.9, "figure"), Column("", 2.4)),
        tuple(
            (
                z.start.title,
                words.duration(z.start.seconds.likely / 3600),
                words.percent(z.result.cold_share),
                words.money(z.usd_per_month),
                said.zero_verdict(z),
            )
            for z in report.zero
        ),
        f"Wait for it: share of the requests that meet a start. {said.zero_beside(report)} Rent by "
        "the second is taken 1.5 times dearer than by the hour, on machines of your own not at "
        "all.",
    )  # fmt: skip
    return (
        Section("Fewer bits, fewer machines", (bits,)),
        Section("What fills the memory", (memory,), 2),
        Section("Prompts and answers on machines of their own",
                (Words((said.apart(report.apart, option, report.ask.shape.is_moe),)),), 2),
        *((Section(said.zero_title(report), (zero,)),) if report.zero else ()),
    )  # fmt: skip


def _grounds(report: ServingReport, prices: tuple[Price, ...]) -> tuple[Section, ...]:
    asked = Table(
        (Column("Figure", 2.0), Column("Value", 1.6, "figure"), Column("Where from", 1.2),
         Column("Source", 0.7, "source")),
        tuple(
            (
                said.RESOLVED[r.name],
                words.quantity(r.value, r.unit),
                "your answer" if r.told else "usual value",
                "" if r.told else r.source,
            )
            for r in report.resolved
        ),
    )  # fmt: skip
    return (
        Section("What it rests on", (Words((RESTS_ON,)),)),
        *price_section(prices, report.today),
        Section("What was asked", (asked,), 2),
    )


def _prices(report: ServingReport) -> tuple[Price, ...]:
    """The price of the plan's machines with its alternatives, then those of the next machines."""
    if report.chosen is None:
        return ()
    machine = report.chosen.candidate.machine
    found = [_tagged(machine, machine.price, machine.usd_per_unit_hour.likely, used=True)]
    found += [
        _tagged(machine, tag, tag.usd_per_unit_hour, used=False)
        for tag in machine.others
        if tag.usd_per_unit_hour is not None and tag != machine.price
    ]
    others = [o.candidate.machine for o in report.answer.options[:SHOWN]]
    found += [
        _tagged(m, m.price, m.usd_per_unit_hour.likely, used=False) for m in others if m != machine
    ]
    return each_once(found)


def _tagged(machine: Machine, tag: PriceTag, usd: float, *, used: bool) -> Price:
    terms, listed = words.terms(tag.terms), tag.usd_per_unit_hour
    if listed is not None and abs(usd / listed - 1.0) > SAME:
        terms += f" (listed at {words.money(listed)}; the time of those taken back is paid as well)"
    return Price(machine.name, _unit(machine), usd, tag.provider, "", terms, tag.region,
                 tag.as_of, tag.age_days, tag.freshness, tag.confidence, tag.source,
                 used)  # fmt: skip
