"""The terms of the costs: money, site, staff, demand, the move."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from pydantic import field_validator, model_validator

from engine.wording import number
from engine.workload.terms import Number, Terms, term
from engine.workload.workload import HOURS_PER_MONTH


class Site(StrEnum):
    """Where owned machines stand."""

    colocation = "colocation"
    own_room = "own_room"


class Cooling(StrEnum):
    """How owned machines are cooled; automatic takes air where a rack can carry the machine."""

    automatic = "automatic"
    air = "air"
    liquid = "liquid"


class DemandBy(StrEnum):
    """Where the demand over the month comes from."""

    plan = "plan"
    constant = "constant"
    schedule = "schedule"
    monthly = "monthly"
    log = "log"


ID = r"^[A-Za-z0-9 ._+/-]{0,80}$"  # of hardware, a way or a machine
MOST_MONTHS = 60
MOST_LEVELS = 24


class CostTerms(Terms):
    """The terms of the costs. None takes the likely value of the data tables."""

    # --- what is looked at
    hardware: str = term("", "Hardware", "on", pattern=ID)
    way: str = term("", "Way to pay", "way", pattern=ID)

    # --- money
    currency: str = term("USD", "Currency shown", "cur", pattern=r"^[A-Z]{3}$")
    currency_rate: float = term(
        1.0, "Rate", "rate", unit="per US dollar", gt=0, le=1e6, allow_inf_nan=False,
        help="Units of the currency for one US dollar, as you know it",
    )  # fmt: skip
    currency_date: date | None = term(None, "Day of the rate", "rated")
    discount_pct: float | None = term(
        None, "Discount rate", "npv", unit="% a year", ge=0, le=60, allow_inf_nan=False,
        help="What money costs you: later dollars count less by it, and capital tied up pays it",
    )  # fmt: skip

    # --- what a cloud's bill adds
    stored_gb: float | None = term(
        None, "Stored data", "keep", unit="GB", ge=0, le=1e9, allow_inf_nan=False,
        help="Object storage where you rent, drives of your own where you buy",
    )  # fmt: skip
    egress_gb: float = term(
        0.0, "Data sent out", "out", unit="GB/month", ge=0, le=1e9, allow_inf_nan=False
    )
    managed: bool = term(False, "A managed control plane (Kubernetes)", "k8s")
    support: bool = term(False, "A support plan of the provider", "help")

    # --- owning
    machine_sku: str = term("", "Machine that you were quoted", "of", pattern=ID)
    machine_usd: float | None = term(
        None, "Your quote for one machine", "buy", unit="USD", gt=0, le=1e8, allow_inf_nan=False,
        help="What one whole machine costs you, with its GPUs; left open, the table's price",
    )  # fmt: skip
    site: Site = term(Site.colocation, "Owned machines stand in", "site")
    cooling: Cooling = term(Cooling.automatic, "Cooled by", "cool")
    usd_per_kwh: float | None = term(
        None, "Price of power", "kwh", unit="USD/kWh", gt=0, le=5, allow_inf_nan=False
    )
    pue: float | None = term(
        None, "Power usage effectiveness", "pue", ge=1, le=5, allow_inf_nan=False,
        help="Power of the whole facility over that of the machines",
    )  # fmt: skip
    available_kw: float | None = term(
        None, "Power available", "kw", unit="kW", gt=0, le=1e6, allow_inf_nan=False
    )
    delivery_months: int | None = term(
        None, "Months until the first useful hour", "wait", unit="months", ge=0, le=36
    )
    staff_fte: float | None = term(
        None, "People who run it", "fte", unit="FTE", ge=0, le=1000, allow_inf_nan=False
    )

    # --- idle hours
    idle_pct: float | None = term(
        None, "Hours planned to be idle", "idle", unit="% of hours", ge=0, lt=100,
        allow_inf_nan=False,
    )  # fmt: skip
    idle_uses: tuple[Number, ...] = term(
        (), "What idle hours are used for", "uses", unit="% of idle hours",
        help="Stress tests, evaluation of models, internal tools, nothing: four shares of 100",
    )  # fmt: skip

    # --- demand over the month
    demand_by: DemandBy = term(DemandBy.plan, "Demand from", "need")
    demand_machines: float | None = term(
        None, "Machines while it runs", "fleet", unit="machines", gt=0, le=1e5, allow_inf_nan=False
    )
    hours_per_day: float | None = term(
        None, "Hours a day", "day", unit="h", gt=0, le=24, allow_inf_nan=False
    )
    days_per_week: float | None = term(
        None, "Days a week", "week", unit="days", gt=0, le=7, allow_inf_nan=False
    )
    monthly_hours: tuple[Number, ...] = term(
        (), "Machine-hours of each month", "list", unit="machine-hours", max_length=MOST_MONTHS
    )
    log_levels: tuple[Number, ...] = term(
        (), "Machines needed", "levels", unit="machines", max_length=MOST_LEVELS,
        help="Levels of an imported log, each with its share of the hours",
    )  # fmt: skip
    log_shares: tuple[Number, ...] = term(
        (), "Share of the hours", "shares", unit="% of hours", max_length=MOST_LEVELS
    )

    # --- capacity blocks
    block_days: int = term(14, "Days of a capacity block", "block", unit="days", ge=1, le=182)

    # --- moving the job
    move_engineers: float | None = term(
        None, "Engineers on the move", "crew", unit="people", ge=0, le=1000, allow_inf_nan=False
    )
    move_months: float | None = term(
        None, "Months planned for it", "move", unit="months", gt=0, le=60, allow_inf_nan=False
    )
    engineer_usd_per_month: float | None = term(
        None, "Cost of an engineer", "pay", unit="USD/month", ge=0, le=1e6, allow_inf_nan=False
    )
    usd_per_hour_saved: float = term(
        0.0, "What an hour of waiting less is worth", "worth", unit="USD/h", ge=0, le=1e7,
        allow_inf_nan=False,
    )  # fmt: skip

    @field_validator("currency", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _together(self) -> CostTerms:
        if self.currency == "USD" and self.currency_rate != 1:
            raise ValueError("currency_rate: a US dollar is one US dollar; name another currency")
        if self.idle_uses and len(self.idle_uses) != 4:
            raise ValueError("idle_uses: four shares are needed, one for each use")
        if self.idle_uses and abs(sum(self.idle_uses) - 100) > 0.5:
            raise ValueError(f"idle_uses: they add up to {sum(self.idle_uses):g}%, not to 100%")
        if len(self.log_levels) != len(self.log_shares):
            alone = "log_shares" if self.log_shares else "log_levels"
            raise ValueError(f"{alone}: each level of the log needs its share of the hours")
        if self.log_shares and sum(self.log_shares) <= 0:
            raise ValueError("log_shares: at least one share must be above 0")
        if self.demand_by is DemandBy.monthly and self.demand_machines and self.monthly_hours:
            most = max(self.monthly_hours)
            if most > self.demand_machines * HOURS_PER_MONTH * (1 + 1e-9):
                raise ValueError(
                    f"demand_machines: {most:,.0f} machine-hours in a month need at least "
                    f"{number(most / HOURS_PER_MONTH)} machines"
                )
        return self
