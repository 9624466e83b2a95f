"""The engine from a shell: the same calls as the pages, with files in and out.

Errors go to the standard error in one sentence, with exit code 2; nobody sees a traceback. Each
command imports what it needs when it runs, so that the quick ones start quickly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

OK, FOUND_FAULTS, BAD_INPUT, UNREACHED = 0, 1, 2, 3
INTERRUPTED = 130
APP = "http://127.0.0.1:8501"
PLAN_FORMATS = ("text", "json", "csv", "pdf")
# The pages of the plans that are told in documents, by their commands.
PLAN_PAGES = {
    "serve": ("serving_plan", "plan the serving of a language model: machines, latency, dollars"),
    "services": ("services_plan", "size a service or data system, place a pipeline's stages"),
    "jobs": ("jobs_plan", "plan a compute job or a small model on GPUs and on CPU servers"),
}
FORMATS = ("text", "json", "csv", "xlsx", "pdf")
BINARY = ("xlsx", "pdf", "kit")
BACKTEST_LIMIT_BYTES = 50_000_000


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code.

    0 done, 1 the data has faults or prices wait to be confirmed, 2 bad input, 3 no source of prices
    could be reached
    """
    parser = _parser()
    try:
        given = parser.parse_args(arguments)
    except SystemExit as stop:  # argparse has printed its help or what was wrong
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    if given.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    return _guarded(given.run, given)


def _guarded(run: Callable[[argparse.Namespace], int], given: argparse.Namespace) -> int:
    """Run a command and say in a sentence what went wrong."""
    from engine.errors import ClusterFitError

    try:
        return run(given)
    except ClusterFitError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # The reader has gone, as with `| head`; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _fail(f"{Path(str(error.filename or 'the file')).name}: {error.strerror or error}")
    except Exception as error:
        message = " ".join(str(error).split())[:300]
        return _fail(f"a fault of ClusterFit, not yours: {type(error).__name__}: {message}")


# --- the commands


def _job(source: str) -> tuple[Any, Any]:
    """The job and the terms of a file, the standard input, or a link to the app."""
    if "://" not in source and not source.startswith("?"):
        from engine.workload.files import read_plan

        return _told_of_quotes(read_plan(source))
    from engine.errors import InputError
    from engine.report.link import decode_query, decode_query_settings

    if "?" not in source:
        raise InputError("it carries no job", where="link", right="copy it from Share in the app")
    workload, notes = decode_query(source)
    settings, more = decode_query_settings(source)
    for note in (*notes, *more):  # a page says what it leaves out; here nobody would read it
        raise InputError(str(note), where="link")
    return _told_of_quotes((workload, settings))


def _told_of_quotes(job: tuple[Any, Any]) -> tuple[Any, Any]:
    """The job; what does not rank of its quotes goes to the standard error, the answer beside."""
    if job[0].quotes:
        from engine.catalogue import load_catalogue
        from engine.decide.quotes import left_out

        for told in left_out(load_catalogue(), job[0].quotes):
            _tell(told)
    return job


def _assess(given: argparse.Namespace) -> int:
    _check_target(given)
    workload, settings = _job(given.file)
    from engine.assess import assess
    from engine.report.link import share_link

    today = given.today or date.today()
    answer = assess(workload, settings=settings, today=today)
    link = share_link(workload, given.link, today, settings) if given.link else ""
    _write(given, _FORMATS[given.format](answer, link))
    return OK


def _as_text(answer: Any, link: str) -> bytes:
    from engine.report.table import to_text

    return (to_text(answer) + (f"Link: {link}\n" if link else "")).encode()


def _as_json(answer: Any, link: str) -> bytes:
    from engine.report.table import to_json

    return _json({**to_json(answer), **({"address": link} if link else {})})


def _as_csv(answer: Any, link: str) -> bytes:
    from engine.report.table import to_csv

    return to_csv(answer, link)


def _as_xlsx(answer: Any, link: str) -> bytes:
    from engine.report.table import to_xlsx

    return to_xlsx(answer, link)


def _as_pdf(answer: Any, link: str) -> bytes:
    from engine.report.pdf import pdf

    return pdf(answer, link)


_FORMATS: dict[str, Callable[[Any, str], bytes]] = {
    "text": _as_text,
    "json": _as_json,
    "csv": _as_csv,
    "xlsx": _as_xlsx,
    "pdf": _as_pdf,
}


def _costs(given: argparse.Namespace) -> int:
    _check_target(given)
    workload, settings = _job(given.file)
    from engine.assess import assess
    from engine.costing.report import cost_report

    answer = assess(workload, settings=settings, today=given.today or date.today())
    report = cost_report(answer, hardware=given.hardware)
    _write(given, _COST_FORMATS[given.format](report, answer))
    return OK


def _costs_as_text(report: Any, answer: Any) -> bytes:
    from engine.report.costs_text import costs_text

    return costs_text(report, answer).encode()


def _costs_as_json(report: Any, answer: Any) -> bytes:
    from engine.report.costs_text import costs_json

    return _json(costs_json(report, answer))


def _costs_as_csv(report: Any, answer: Any) -> bytes:
    from engine.report.costs_csv import costs_csv

    return costs_csv(report, answer)


def _costs_as_xlsx(report: Any, answer: Any) -> bytes:
    from engine.report.costs_xlsx import costs_xlsx

    return costs_xlsx(report, answer)


_COST_FORMATS: dict[str, Callable[[Any, Any], bytes]] = {
    "text": _costs_as_text,
    "json": _costs_as_json,
    "csv": _costs_as_csv,
    "xlsx": _costs_as_xlsx,
}


def _train(given: argparse.Namespace) -> int:
    from engine.workload.files import read_text

    _check_target(given)
    workload, settings = _job(given.file)
    if given.config:
        from engine.estimate.model_shape import shape_from_text
        from engine.estimate.shape_text import shape_text

        shape = shape_text(shape_from_text(read_text(given.config), given.config))
        terms = settings.training.model_copy(update={"shape": shape})
        settings = settings.model_copy(update={"training": terms})
    from engine.planning import training_text as told
    from engine.planning.training import train_report

    report = train_report(workload, settings, today=given.today or date.today())
    if given.format == "kit":
        data = told.training_kit(report, workload, settings)
    elif given.format == "json":
        data = _json(told.training_json(report))
    else:
        data = told.training_text(report).encode()
    _write(given, data)
    return OK


def _plan(given: argparse.Namespace) -> int:
    _check_target(given)
    workload, settings = _job(given.file)
    from engine.report.link import share_link
    from engine.report.plans import FORMATS as WRITERS
    from engine.report.plans import PLANS

    today = given.today or date.today()
    link = share_link(workload, given.link, today, settings) if given.link else ""
    _write(given, WRITERS[given.format](PLANS[given.command](workload, settings, today, link)))
    return OK


def _example(given: argparse.Namespace) -> int:
    from engine.workload.examples import EXAMPLES, example

    if given.list:
        _print("\n".join(EXAMPLES))
        return OK
    if given.name is None:
        return _fail("name an example, or list them: example --list")
    from engine.workload.files import to_toml

    found = example(given.name)
    _print(to_toml(found.workload, comment=f"{found.title}\n{found.story}").rstrip("\n"))
    return OK


def _schema(given: argparse.Namespace) -> int:
    from engine.workload.workload import Workload

    _print(_json(Workload.model_json_schema()).decode().rstrip("\n"))
    return OK


def _check_data(given: argparse.Namespace) -> int:
    folder = Path(given.folder) if given.folder else None
    if folder is not None and not folder.is_dir():
        return _fail(f"{folder.name or given.folder}: there is no such folder")
    from engine.catalogue import check_report

    text, errors = check_report(folder) if folder else check_report()
    _print(str(text).rstrip("\n"))
    return FOUND_FAULTS if errors else OK


def _update_prices(given: argparse.Namespace) -> int:
    from engine.catalogue.update.run import update_prices

    done = update_prices(
        [Path(name) for name in given.files],
        provider=given.provider,
        as_of=given.as_of,
        accept_moves=given.accept_moves,
    )
    _print(done.text)
    if not done.reached:
        return UNREACHED
    return FOUND_FAULTS if done.waiting else OK


def _shape(given: argparse.Namespace) -> int:
    from engine.workload.files import read_text

    text = read_text(given.file)
    from engine.estimate.model_shape import shape_from_text, shape_json

    shape = shape_json(shape_from_text(text))
    _print(shape.rstrip("\n") if isinstance(shape, str) else _json(shape).decode().rstrip("\n"))
    return OK


def _backtest(given: argparse.Namespace) -> int:
    from engine.workload.files import read_text

    if given.file == "-":
        return _fail("backtest reads a file, not the standard input")
    read_text(given.file, BACKTEST_LIMIT_BYTES)  # that it is there, is text and is not too large
    result = _BACKTESTS[given.what](Path(given.file))
    _print(_json(result).decode().rstrip("\n") if given.format == "json" else _outline(result))
    return OK


def _backtest_training(path: Path) -> Any:
    from engine.calibrate.backtest_training import backtest_training

    return backtest_training(path)


def _backtest_serving(path: Path) -> Any:
    from engine.calibrate.backtest_serving import backtest_serving

    return backtest_serving(path)


_BACKTESTS: dict[str, Callable[[Path], Any]] = {
    "training": _backtest_training,
    "serving": _backtest_serving,
}


def _link(given: argparse.Namespace) -> int:
    from engine.report.link import link, query_string

    workload, settings = _job(given.file)
    query = query_string(workload, settings=settings)
    _print(link(given.address, workload, settings=settings) if given.address else query)
    return OK


# --- arguments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m engine",
        description="Which hardware a job belongs on. FILE is TOML or JSON, - the standard input, "
        "or a link to the app.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str) -> Any:
        command = commands.add_parser(name, help=help, description=help)
        command.set_defaults(run=run)
        return command

    command = add("assess", _assess, "recommend hardware for a workload")
    _answers(command, FORMATS)
    _linked(command, "recommendation")
    command = add("costs", _costs, "cost every way to pay for one hardware, month by month")
    _answers(command, tuple(_COST_FORMATS))
    command.add_argument(
        "--hardware", default="", metavar="ID", help="default: the recommended; json lists the ids"
    )
    command = add("train", _train, "plan the training of a language model, and its launch files")
    _answers(command, ("text", "json", "kit"))
    command.add_argument("--config", metavar="CONFIG.json", help="the model's configuration")
    for name, (page, told) in PLAN_PAGES.items():
        command = add(name, _plan, told)
        _answers(command, PLAN_FORMATS)
        _linked(command, page)
    command = add("example", _example, "print a ready workload as TOML")
    command.add_argument("name", nargs="?", metavar="NAME")
    command.add_argument("--list", action="store_true", help="the names, one a line")
    add("schema", _schema, "print the JSON Schema of a workload")
    command = add("check-data", _check_data, "check the tables of hardware and prices")
    command.add_argument("folder", nargs="?", metavar="FOLDER", help="default: the shipped data")
    command = add(
        "update-prices",
        _update_prices,
        "refresh the prices from published files into a second, dated table; exits with 1 where "
        "large moves wait to be confirmed, with 3 where no source could be reached",
    )
    command.add_argument(
        "--from",
        dest="files",
        action="append",
        default=[],
        metavar="FILE",
        help="a downloaded price file instead of the network; may be given more than once",
    )
    command.add_argument("--provider", default="", metavar="NAME", help="whose prices FILE holds")
    command.add_argument("--as-of", type=_day, metavar="DATE", help="the day of FILE's prices")
    command.add_argument(
        "--accept-moves",
        action="store_true",
        help="take large moves too, once you have checked them",
    )
    command = add("shape", _shape, "count a model's parameters from its config.json")
    command.add_argument("file", metavar="FILE")
    command = add("backtest", _backtest, "compare predictions with measured runs")
    command.add_argument("what", choices=tuple(_BACKTESTS))
    command.add_argument("file", metavar="FILE.csv")
    command.add_argument("--format", choices=("text", "json"), default="text")
    command = add("link", _link, "print the query string of a workload")
    command.add_argument("file", metavar="FILE")
    command.add_argument("--address", help="print a whole link to the app at this address")
    return parser


def _answers(command: Any, formats: tuple[str, ...]) -> None:
    """The job that is asked about, and how and where the answer is written."""
    command.add_argument("file", metavar="FILE", help="the workload, TOML or JSON; or a link")
    command.add_argument("--format", choices=formats, default="text", help="default: text")
    command.add_argument(
        "-o", "--output", metavar="FILE", help="where to write; default: on screen"
    )
    command.add_argument("--today", type=_day, metavar="DATE", help="count prices' ages from it")


def _linked(command: Any, page: str) -> None:
    command.add_argument(
        "--link",
        nargs="?",
        const=f"{APP}/{page}",
        metavar="ADDRESS",
        help="add the link that opens the answer, at this address of the app",
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no date; write it as 2026-12-01"
        ) from None


# --- output


def _check_target(given: argparse.Namespace) -> None:
    """Refuse before the work what can't be written after it."""
    from engine.errors import InputError

    if given.output is None:
        if given.format in BINARY and sys.stdout.isatty():
            raise InputError(
                f"a {given.format.upper()} is nothing for the screen",
                where="--output",
                right=f"name a file: --output answer.{given.format}",
            )
        return
    target = Path(given.output)
    if target.is_dir():
        raise InputError("this is a folder", where=f"--output {target.name}", right="name a file")
    if not target.parent.is_dir():
        raise InputError("there is no such folder", where=f"--output {target.parent.name}")


def _write(given: argparse.Namespace, data: bytes) -> None:
    if given.output is not None:
        Path(given.output).write_bytes(data)
    else:
        _send(data)


def _print(text: str) -> None:
    _send(f"{text}\n".encode())


def _send(data: bytes) -> None:
    """Bytes to the standard output, UTF-8 whatever the terminal's locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _tell(message: str) -> None:
    """A sentence to the standard error."""
    sys.stderr.buffer.write(f"{message}\n".encode("utf-8", "replace"))
    sys.stderr.buffer.flush()


def _fail(message: str) -> int:
    _tell(message)
    return BAD_INPUT


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return f"{text}\n".encode()


def _outline(value: Any, indent: str = "") -> str:
    """A result of names and figures as indented lines."""
    if isinstance(value, dict):
        lines = []
        for key, inner in value.items():
            nested = isinstance(inner, dict | list) and inner
            told = "\n" + _outline(inner, indent + "  ") if nested else " " + _outline(inner)
            lines.append(f"{indent}{str(key).replace('_', ' ')}:{told}")
        return "\n".join(lines)
    if isinstance(value, list | tuple):
        return "\n".join(f"{indent}- {_outline(item).strip()}" for item in value)
    return f"{indent}{value:.4g}" if isinstance(value, float) else f"{indent}{value}"
