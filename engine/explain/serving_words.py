"""The sentences of the serving page: each figure in a founder's words, nothing computed twice."""

from __future__ import annotations

from engine.cost.api_prices import Buying
from engine.estimate.serving_disaggregated import Disaggregated
from engine.estimate.serving_frontier import Check
from engine.estimate.serving_plan import Refusal, ServingAsk, ServingOption
from engine.estimate.serving_points import at_rate, curve
from engine.estimate.serving_unbatched import unbatched, usd_per_thousand_requests
from engine.explain.serving import QuantisationRow, ServingReport, ZeroRow
from engine.wording import duration, money, number, percent, rough

# What each resolved number is called.
RESOLVED = {
    "model_params_b": "Model size", "tokens_in": "Tokens read", "tokens_out": "Tokens written",
    "rate_per_s": "Requests, mean", "peak_factor": "Peak over mean",
    "ttft_target_s": "First token within", "tpot_target_s": "Each further token within",
}  # fmt: skip
FLOORS = {
    "memory": "the model or one request does not fit into its memory",
    "ttft": "the first token comes too late",
    "tpot": "tokens come too slowly",
    "batch": "memory for no more answers at once",
    "load": "run no fuller",
}
QUALITY = {
    16: "The weights as they were trained.",
    8: "Answers hardly change: within a percent of the usual tests for most models (Kurtic et al., "
    "2024, arXiv 2411.02355). Try your own cases.",
    4: "Large models lose little, small ones more, reasoning and rare languages most. Measure on "
    "your own cases before you rely on it.",
}


def seconds(value: float) -> str:
    """A latency: 0.85 s, 70 ms; 30 min where it is that long."""
    if value >= 120.0:
        return duration(value / 3600.0)
    return f"{rough(value)} s" if value >= 0.995 else f"{rough(value * 1e3)} ms"


def per_second(rate: float) -> str:
    """A rate of requests."""
    return f"{number(rate)} requests/s"


def at_once(batch: float) -> str:
    """Answers under way in one replica."""
    return "mostly one answer at a time" if batch < 1.5 else f"{batch:,.0f} answers at once"


def doubtful(option: ServingOption) -> str:
    """A warning where the slow end of a capacity's range misses the targets; else nothing."""
    if option.candidate.capacity.requests.low > 0:
        return ""
    return (
        f"At the slow end of its range {option.candidate.machine.label} misses the targets: "
        "measure one before you rely on it."
    )


def zero_beside(report: ServingReport) -> str:
    """What always-on costs without its spare machines, to hold scaling to zero against."""
    option = report.chosen
    if option is None or not option.machines:
        return ""
    needed = option.candidate.machines(option.replicas)
    return (
        f"Always on, the same without spare machines costs "
        f"{money(option.usd_always_on * needed / option.machines)} a month."
    )


def machines(count: int, label: str) -> str:
    """So many machines: `3 × 8× H100 SXM`."""
    return f"{count:,} × {label}"


def headline(report: ServingReport) -> str:
    """What to rent, what it costs, what it carries."""
    option = report.chosen
    if option is None or report.answer.state == "no_traffic":
        return report.answer.message
    usd = option.usd_per_month
    return (
        f"{machines(option.machines, option.candidate.machine.label)}: {money(usd.likely)} a month "
        f"({money(usd.low)} to {money(usd.high)})"
    )


def what_runs(report: ServingReport, option: ServingOption) -> str:
    """Replicas, layout, spare machines, utilization."""
    ask = report.ask
    layout = option.candidate.layout.told(ask.shape.is_moe)
    replicas = (
        f"one replica ({layout}) carries"
        if option.replicas == 1
        else f"{option.replicas:,} replicas ({layout}) carry"
    )
    kept = option.machines - option.candidate.machines(option.replicas)
    spare = "none spare" if not kept else f"{kept:,} of the machines spare"
    bits = option.candidate.replica.plan.weight_bytes * 8
    return (
        f"{ask.shape.name or 'The model'}, weights in {number(float(bits))} bits: "
        f"{replicas} the peak of {per_second(ask.traffic.peak)}, {spare}. {_evenly(report)}, so "
        f"the machines are used to {percent(option.utilization)} over the day.{_more(option, ask)}"
    )


def _evenly(report: ServingReport) -> str:
    traffic = report.ask.traffic
    if traffic.peak_to_mean < 1.005:
        return "Requests come evenly"
    return f"The peak is {rough(traffic.peak_to_mean)} times the mean of {per_second(traffic.mean)}"


def _more(option: ServingOption, ask: ServingAsk) -> str:
    """What replicas bring that the machines have room for beyond those that are needed."""
    if not option.replicas_free:
        return ""
    running = option.replicas + option.replicas_free
    points = curve(option.candidate.replica, ask.load, ask.targets.percentile)
    faster = at_rate(points, ask.traffic.peak / running).tpot_mean_s
    return (
        f" They have room for {option.replicas_free:,} more at no further cost: with all running "
        f"a token takes {seconds(faster)} in place of {seconds(option.at_peak.tpot_mean_s)}."
    )


def gpu_or_cpu(gpu: ServingOption | None, cpu: ServingOption | None) -> str:
    """Which of the two is the cheaper inside the targets."""
    if gpu is None and cpu is None:
        return "Neither GPUs nor CPU servers meet the targets"
    if cpu is None:
        return "No CPU server meets the targets"
    if gpu is None:
        return "No GPU meets the targets, a CPU server does"
    a, b = gpu.usd_per_month.likely, cpu.usd_per_month.likely
    if a <= 0 or b <= 0:
        return "Nothing comes, so neither costs anything"
    if a <= b:
        return f"CPU servers cost {times(b / a)} the GPUs"
    return f"GPUs cost {times(a / b)} the CPU servers"


def without_batches(option: ServingOption, report: ServingReport) -> str:
    """What the same machines would take with one answer at a time in a replica."""
    found = unbatched(option, report.ask)
    if found is None:
        return "No number of them is enough"
    if found.machines == option.machines:
        return "The same"
    return (
        f"{machines(found.machines, option.candidate.machine.label)}, "
        f"{money(found.usd_per_month)}: {times(found.times)} as many"
    )


def thousand(option: ServingOption, report: ServingReport) -> str:
    """Dollars of a thousand requests."""
    return money(usd_per_thousand_requests(option, report.ask))


def times(ratio: float) -> str:
    """A ratio: 1.3 times, 30 times."""
    return f"{rough(ratio)} times" if ratio < 10 else f"{ratio:,.0f} times"


def refusal(found: Refusal, report: ServingReport) -> str:
    """Why a machine can't serve, with its own floor."""
    targets = report.ask.targets
    if found.floor == "memory":
        return (
            f"{FLOORS['memory']}: {found.needs_gib:,.0f} GiB needed on each device, "
            f"{found.has_gib:,.0f} to be had"
        )
    late = targets.ttft_s is not None and found.ttft_floor_s > targets.ttft_s * 0.96
    if late:
        return f"the first token takes {seconds(found.ttft_floor_s)} at best"
    return f"a token takes {seconds(found.tpot_floor_s)} at best"


def api_title(report: ServingReport) -> str:
    """Hosting or buying tokens, by what they cost at this load."""
    option = report.answer.best
    if not report.apis:
        return "No public price for a model of this size is in the table"
    cheap, dear = report.apis[0], report.apis[-1]
    asked = (
        f"{money(cheap.usd_per_month)} to {money(dear.usd_per_month)}"
        if len(report.apis) > 1
        else money(cheap.usd_per_month)
    )
    if option is None:
        return f"APIs took {asked} a month for this load when their prices were read"
    own = option.usd_per_month.likely
    if own <= 0:
        return "Nothing comes: an API costs nothing then, and stays ready"
    # The cheapest machines stand against the APIs; where others are planned with, they are named.
    other = report.chosen is not None and report.chosen.id != option.id
    on = f" on {machines(option.machines, option.candidate.machine.label)}" if other else ""
    return f"Hosting costs {money(own)} a month{on}; APIs took {asked} when their prices were read"


def api_message(report: ServingReport) -> str:
    """From which rate on hosting wins, and what the comparison leaves out."""
    won = [b for b in report.apis if b.wins_from_per_s is not None]
    if not report.apis:
        return "Prices of other models stand below, for the order of magnitude."
    if not report.answer.candidates:
        return (
            "Nothing of your own meets the targets, so there is no rate to compare. Whether an API "
            "does is its maker's promise, and not known here. List prices of the date shown."
        )
    if won:
        least = min(won, key=lambda b: b.wins_from_per_s or 0.0)
        rate, rest = per_second(least.wins_from_per_s or 0.0), len(report.apis) - len(won)
        text = f"Against {least.offer.provider} hosting wins from {rate} on average on"
        text += (
            f"; against {rest} of the others it never does with this shape of the day. "
            if rest
            else ", and later against the others. "
        )
    else:
        text = (
            "At no rate does hosting win with this shape of the day, precision and target: an API "
            "shares its machines over many customers, yours wait for the peak. "
        )
    text += (
        "Fewer bits, an even day and spare capacity that others use move it. List prices of the "
        "date shown; no discount for batches. Data leave the house."
    )
    if report.place:
        text += f" {report.place}"
    return text


def wins_from(bought: Buying) -> str:
    """The rate from which hosting wins against an offer."""
    return "never" if bought.wins_from_per_s is None else per_second(bought.wins_from_per_s)


def quantised(row: QuantisationRow) -> str:
    """What the cheapest plan at a precision is."""
    if row.option is None:
        return row.message
    o = row.option
    return f"{machines(o.machines, o.candidate.machine.label)}"


def quality(bits: float) -> str:
    """What is known of the answers' quality at a precision."""
    return QUALITY[16 if bits > 8.6 else 8 if bits > 4.6 else 4]


def apart(found: Disaggregated | None, option: ServingOption, experts: bool = False) -> str:
    """Whether prefill and decoding apart would pay; experts : whether the model has any."""
    if found is None:
        return (
            "Prefill and decoding apart can't be sized here: it needs GPUs, traffic, and targets "
            "that each pool meets alone."
        )
    size = (
        f"replicas for prompts: {found.prefill_replicas:,} ({found.prefill.told(experts)}), for "
        f"decoding: {found.decode_replicas:,} ({found.decode.told(experts)}); {found.machines:,} "
        f"machines in all, {money(found.usd_per_month)} a month. First token within "
        f"{seconds(found.ttft_s)}, {seconds(found.handover_s)} of it to hand over, then a token "
        f"every {seconds(found.tpot_s)}"
    )
    now = option.usd_always_on
    if found.usd_per_month < now * 0.97:
        verdict = f"saves {percent(1 - found.usd_per_month / now)}"
    elif found.usd_per_month > now * 1.03:
        verdict = f"costs {percent(found.usd_per_month / now - 1)} more: keep them together"
    else:
        verdict = "costs the same: keep the simpler"
    # The plan itself may follow the hours; pools of two kinds are compared around the clock.
    if option.usd_per_month.likely < now * 0.999:
        verdict += f" (both around the clock, together {money(now)} a month)"
    return f"Prefill and decoding apart {verdict}. It would take {size}."


def zero_title(report: ServingReport) -> str:
    """Whether scaling to zero pays and keeps the promise."""
    option = report.chosen
    if option is None or not report.zero:
        return "Scaling to zero"
    meets = [z for z in report.zero if z.meets and z.result.cold_share < 0.999]
    cheapest = min(meets, key=lambda z: z.usd_per_month, default=None)
    if cheapest is None:
        return "Scaling to zero breaks the promise: too many requests meet a cold start"
    if cheapest.result.on_share > 0.98:
        return "The service is never idle, so scaling to zero saves nothing"
    return (
        f"Scaling to zero keeps the promise and costs {money(cheapest.usd_per_month)} a month "
        f"(start from: {cheapest.start.title[0].lower()}{cheapest.start.title[1:]})"
    )


def zero_verdict(row: ZeroRow) -> str:
    """What users see with this way to start."""
    cold = row.result.percentile_is_cold
    if row.meets:
        return "keeps the target, cold starts included" if cold else "keeps the target"
    return "breaks the target: promised requests meet a start" if cold else "misses the target"


def chain(row: ZeroRow) -> str:
    """The stages of a cold start."""
    return "; ".join(f"{s.name}: {duration(s.seconds.likely / 3600)}" for s in row.start.stages)


def checked(found: Check, report: ServingReport) -> str:
    """What the simulation says of the plan."""
    percentile = f"{report.ask.targets.percentile * 100:g} of 100"
    seen = found.simulated
    count = found.replicas_planned
    planned = "one replica" if count == 1 else f"{count:,} replicas"
    said = (
        f"{seen.requests:,} requests at the peak with {planned}: first token within "
        f"{seconds(found.ttft_s)} for {percentile} ({_off(found.ttft_off)} the formula), a token "
        f"every {seconds(seen.tpot_mean_s)} ({_off(found.tpot_off)}), {at_once(seen.batch_mean)}."
    )
    if found.holds:
        return f"The simulation confirms the plan. {said}"
    if not found.enough:
        return (
            f"In the simulation even {found.replicas:,} replicas in place of "
            f"{found.replicas_planned:,} miss the targets: take another machine. {said}"
        )
    return (
        f"The simulation corrects the plan: {found.replicas:,} replicas in place of "
        f"{found.replicas_planned:,}, {money(found.usd_per_month)} a month. {said}"
    )


def corrected(found: Check, report: ServingReport) -> str:
    """Beside the headline: what the simulation changed; nothing where it confirms the plan.

    report : as the closed form has it
    """
    option = report.chosen
    if found.holds or option is None:
        return ""
    if found.corrected is None:
        return "In a simulation this plan misses its targets, with more replicas too."
    before = machines(option.machines, option.candidate.machine.label)
    return (
        f"Corrected by a simulation: the formula has {before} for "
        f"{money(option.usd_per_month.likely)} a month. The range of costs is the formula's, moved."
    )


def _off(share: float) -> str:
    if abs(share) < 0.005:
        return "as in"
    return f"{abs(share):.0%} {'above' if share > 0 else 'below'}"
