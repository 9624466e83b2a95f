"""The command `update-prices`: read, judge, write a dated table, and say what happened.

Reads as the flow: rows of files or of the network; the present prices; the plan; the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from engine.catalogue.limits import limit
from engine.catalogue.load import Catalogue, price_faults, shipped_catalogue, with_update
from engine.catalogue.models import Offer
from engine.catalogue.offer_checks import offer_key
from engine.catalogue.update import store
from engine.catalogue.update.fetch import Download, fetch
from engine.catalogue.update.formats import PriceRow, read_file
from engine.catalogue.update.plan import Plan, plan
from engine.errors import DataError

SHOWN = 12
HOW_OFFLINE = (
    "To refresh without a network, fetch a price file elsewhere (a vms.csv of the SkyPilot "
    "catalogue, or a provider's catalog.zip of gpuhunt) and run:\n"
    "  python -m engine update-prices --from aws.csv"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the command did: its report, the table written (if any), the moves that wait.

    reached : whether any source or file was read; False where there is no network
    """

    text: str
    file: Path | None
    waiting: int
    reached: bool = True


def update_prices(
    files: Sequence[Path] = (),
    *,
    provider: str = "",
    as_of: date | None = None,
    accept_moves: bool = False,
    today: date | None = None,
    place: Path | None = None,
    download: Download | None = None,
) -> Outcome:
    """Refresh the prices from files, or from the network when there are none.

    Parameters
    ----------
    files : downloaded price files
    provider : whose prices they are, where neither name nor machines tell
    as_of : the day of files that say none; otherwise the day of the file itself
    accept_moves : take prices that moved by more than the limit
    place : folder of the refreshed tables
    download : gives the bytes at an address; the network's when omitted

    Raises
    ------
    ImportFileError : a file can't be read
    OSError : the table can't be written
    """
    today = today or date.today()
    place = place or store.folder()
    head: list[str] = []
    if files:
        rows: list[PriceRow] = []
        for file in files:
            day, told = _day(file, as_of, today)
            found = read_file(file, day, provider)
            if as_of is None:
                found = [r if r.form == "table" else replace(r, dated=False) for r in found]
            rows += found
            own_days = any(r.form == "table" for r in found)
            head.append(f"Read {file.name}, {'each row of its own day' if own_days else told}.")
    else:
        got = fetch(today, download)
        if not got.read:
            return Outcome(_offline(place, today, got.failed), None, 0, reached=False)
        rows = got.rows
        head.append(f"Read {', '.join(got.read)}.")
        head += [f"Could not be read, keeps its prices: {n}: {w}" for n, w in got.failed.items()]
    shipped = shipped_catalogue()
    target = place / f"prices-{today}.csv"
    kept, notes = _kept(shipped, place, target, today)
    done = plan(
        rows,
        _before(shipped, place, today).offers,
        shipped.accelerators,
        today=today,
        factor=limit("price_move_factor"),
        accept_moves=accept_moves,
        check=lambda offers: price_faults(offers, target, shipped.parameters),
    )
    table = _merged(shipped, kept, done.accepted)
    if done.accepted:
        store.write(target, table)
    text = "\n".join(
        [*head, *notes, *_told(done, shipped, table, target if done.accepted else None)]
    )
    return Outcome(text, target if done.accepted else None, len(done.moves))


def _day(file: Path, as_of: date | None, today: date) -> tuple[date, str]:
    """The day of a file and how it is known: never later than today."""
    if as_of is not None:
        return as_of, f"of {as_of} as you say"
    try:
        day = min(date.fromtimestamp(file.stat().st_mtime), today)
    except OSError:
        return today, "undated"  # reading it will say what is wrong
    return day, (
        f"of {day}, the file's own date: it says no day itself, so if its prices are older, give "
        "theirs with --as-of"
    )


def _before(shipped: Catalogue, place: Path, today: date) -> Catalogue:
    """The prices in use before today's refresh: what a move is measured against.

    Today's own table doesn't count, so that a second run judges as the first one did.
    """
    file = store.newest(place, before=today)
    return shipped if file is None else with_update(shipped, file, today)


def _kept(
    shipped: Catalogue, place: Path, target: Path, today: date
) -> tuple[list[Offer], list[str]]:
    """Refreshed prices of earlier runs, for offers to which this one brings none."""
    kept: dict[object, Offer] = {}
    notes = []
    earlier = store.newest(place, before=today)
    for file in (earlier, target if target.exists() else None):
        if file is None:
            continue
        fault = with_update(shipped, file, today).update.fault
        try:
            kept |= {} if fault else {offer_key(o): o for _, o in store.read(file, today)}
        except DataError as error:
            fault = str(error)
        if fault:
            notes.append(f"The earlier table is not used: {fault}")
    return list(kept.values()), notes


def _merged(shipped: Catalogue, kept: Sequence[Offer], accepted: Sequence[Offer]) -> list[Offer]:
    """The rows of the new table: in the order of the shipped one, the newest price of each."""
    updates = {offer_key(o): o for o in kept} | {offer_key(o): o for o in accepted}
    merged, _ = store.overlay(shipped.offers, [(2, o) for o in updates.values()])
    return [offer for line, offer in merged if line == 2]


# --- words


def _told(done: Plan, shipped: Catalogue, table: Sequence[Offer], file: Path | None) -> list[str]:
    lines = []
    count = len(done.accepted)
    if file is not None:
        ranked = sum(o.rankable for o in shipped.offers)
        lines += [
            f"{_s(count, 'price')} refreshed: {done.moved} moved, {count - done.moved} the same.",
            f"Written to {file}: {_s(len(table), 'row')}. The other {ranked - len(table)} prices "
            "stay those of the shipped table, with their own dates.",
            "An app that is running uses them after its next start.",
        ]
    else:
        lines.append("No price was refreshed; no file was written.")
    if done.accepted_moves:
        lines.append(f"Large moves taken over, as confirmed ({len(done.accepted_moves)}):")
        lines += [f"  {move}" for move in done.accepted_moves]
    if done.moves:
        factor = limit("price_move_factor")
        lines.append(
            f"Refused, moved by more than {factor:g} times ({len(done.moves)}); if they are right, "
            "run again with --accept-moves:"
        )
        lines += [f"  {move}" for move in done.moves]
    if done.refused:
        lines.append(f"Refused, can't be a price of the offer ({len(done.refused)}):")
        lines += [f"  {why}" for why in done.refused]
    if done.older:
        lines.append(f"Older than the price in use, left out: {_s(done.older, 'offer')}.")
    lines += _counted("Of other places, sizes or terms than the table's", done.elsewhere)
    lines += _counted("Of machines that the table doesn't have", done.unknown)
    lines += _counted("With GPUs of a name that isn't known", done.unknown_gpus)
    return lines


def _counted(what: str, found: Counter[str]) -> list[str]:
    if not found:
        return []
    names = ", ".join(name for name, _ in found.most_common(SHOWN))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [f"{what}, left out: {_s(found.total(), 'row')} of {len(found)}: {names}{more}."]


def _offline(place: Path, today: date, failed: dict[str, str]) -> str:
    """No source answered: what goes on working, how old its prices are, what can be done."""
    in_use = shipped_catalogue()
    newest = store.newest(place)
    if newest is not None:
        in_use = with_update(in_use, newest, today)
    days = [o.provenance.as_of for o in in_use.offers if o.rankable]
    latest = max(days)
    file = in_use.update.file if in_use.update.file and not in_use.update.fault else "offers.csv"
    why = "; ".join(sorted(set(failed.values())))[:300]
    lines = [
        f"No price source could be reached ({why}): nothing was refreshed or written.",
        "ClusterFit works offline, with the prices that it has. "
        f"The newest is of {latest}, {_s((today - latest).days, 'day')} old, the oldest that ranks "
        f"of {min(days)} ({file}).",
        HOW_OFFLINE,
    ]
    if in_use.update.fault:
        lines.insert(2, f"{in_use.update.file} is not in use: {in_use.update.fault}")
    return "\n".join(lines)


def _s(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
