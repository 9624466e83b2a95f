"""The plans from a shell: serve, services and jobs, of a file or of a link to the app."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cli import PLAN_FORMATS, PLAN_PAGES, main
from engine.report.link import query_string
from engine.report.plans import FORMATS, PLANS
from engine.workload.examples import EXAMPLES
from engine.workload.files import to_toml
from engine.workload.workload import parse

Run = Callable[..., tuple[int, str, str]]
DAY = ("--today", "2026-12-01")
STARTS = {
    "text": b"Small model: A trading path below one millisecond\n",
    "json": b"{",
    "csv": b"\xef\xbb\xbfsection,item,low,likely,high,unit,source\r\n",
    "pdf": b"%PDF-1.7",
}


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process: exit code, output, errors."""

    def run_command(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(list(arguments))
        out, err = capfdbinary.readouterr()
        return code, out.decode("utf-8", "surrogateescape"), err.decode()

    return run_command


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    path.write_text(to_toml(EXAMPLES["trading-path"].workload), encoding="utf-8")
    return path


def test_the_shell_names_what_the_engine_offers() -> None:
    assert tuple(FORMATS) == PLAN_FORMATS
    assert tuple(PLANS) == tuple(PLAN_PAGES)


@pytest.mark.parametrize("form", PLAN_FORMATS)
def test_each_format_goes_to_a_file_or_the_output(run: Run, job: Path, form: str) -> None:
    target = job.parent / f"plan.{form}"
    given = ("jobs", str(job), "--format", form, *DAY)
    assert run(*given, "-o", str(target)) == (0, "", "")
    assert target.read_bytes().startswith(STARTS[form])
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    assert out.encode("utf-8", "surrogateescape") == target.read_bytes()


@pytest.mark.parametrize(
    ("command", "name"),
    [("serve", "lora-7b"), ("services", "internal-dashboard"), ("jobs", "legacy-fortran")],
)
def test_text_values_and_table_tell_the_same_figures(run: Run, command: str, name: str) -> None:
    written = to_toml(EXAMPLES[name].workload).encode()
    code, told, err = run(command, "-", *DAY, stdin=written)
    assert (code, err) == (0, "")
    values = json.loads(run(command, "-", "--format", "json", *DAY, stdin=written)[1])
    assert " ".join(values["verdict"].split()) in " ".join(told.split())
    table = run(command, "-", "--format", "csv", *DAY, stdin=written)[1]
    rows = list(csv.DictReader(io.StringIO(table.removeprefix("\ufeff"))))
    assert len(rows) == len(values["figures"])
    for row, given in zip(rows, values["figures"], strict=True):
        assert (float(row["likely"]) if row["likely"] else None) == (
            pytest.approx(given["likely"], rel=1e-11) if given["likely"] is not None else None
        )
    assert all(price["as_of"] and price["source"] for price in values["prices"])


def test_a_link_to_the_app_is_read_like_the_file(run: Run, job: Path) -> None:
    query = query_string(EXAMPLES["trading-path"].workload)
    written = run("jobs", str(job), *DAY)[1]
    for link in (f"http://127.0.0.1:8501/jobs_plan?{query}", f"?{query}"):
        assert run("jobs", link, *DAY) == (0, written, "")


def test_the_terms_of_the_page_count_from_the_file(run: Run) -> None:
    head = b'kind = "online_inference"\nmodel_class = "llm"\nmodel_params_b = 8\nrate_per_s = 5\n'
    usual = json.loads(run("serve", "-", "--format", "json", *DAY, stdin=head)[1])
    eight = head + b'[serving]\nweights = "8"\n'
    told = json.loads(run("serve", "-", "--format", "json", *DAY, stdin=eight)[1])
    assert "weights in 16 bits" in usual["lead"][0]
    assert "weights in 8 bits" in told["lead"][0]


def test_the_link_of_the_plans_page_is_added_on_demand(run: Run, job: Path) -> None:
    for form in ("text", "csv", "json"):
        given = ("jobs", str(job), "--format", form, *DAY)
        link = "http://127.0.0.1:8501/jobs_plan?v=1&"
        assert link not in run(*given)[1]
        assert link in run(*given, "--link")[1]
        assert "https://x.example/j?v=1&" in run(*given, "--link", "https://x.example/j")[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "none.toml"), "none.toml: there is no such file"),
        (("serve", "FOLDER"), "this is a folder"),
        (("jobs", "JOB", "--format", "xlsx"), "xlsx"),
        (("jobs", "JOB", "-o", "FOLDER"), "this is a folder"),
        (("jobs", "JOB", "-o", "FOLDER/none/plan.pdf"), "there is no such folder"),
        (("jobs", "JOB", "--today", "soon"), "write it as 2026-12-01"),
        (("jobs", "http://127.0.0.1:8501/jobs_plan"), "link: it carries no job"),
        (("jobs", "http://127.0.0.1:8501/jobs_plan?v=1&kind=abacus"), "link: kind: “abacus”"),
        (
            ("serve", "http://127.0.0.1:8501/x?v=1&kind=lora&colour=red"),
            "link: colour: there",
        ),
        (("services", "?v=1&kind=lora"), "kind: this job is no service"),
        (("jobs", "?v=1&kind=lora"), "kind: this job is neither a compute job nor"),
        (("services",), "FILE"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    run: Run, tmp_path: Path, job: Path, arguments: tuple[str, ...], said: str
) -> None:
    places = {"FOLDER": tmp_path, "JOB": job}
    put = [
        str(places[a.split("/")[0]]) + a[len(a.split("/")[0]) :] if a.split("/")[0] in places else a
        for a in arguments
    ]
    code, out, err = run(*put)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert "not yours" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'kind = "web"\nrate_per_s = "many"\n', "standard input line 2, rate_per_s"),
        (b'kind = "web\n', "no valid TOML"),
        (b'kind = "web"\nrates = 5\n', "did you mean rate_per_s?"),
        (b'kind = "web"\n[architecture]\ncopies = -1\n', "standard input line 3, copies"),
    ],
)
def test_a_broken_file_is_told_with_its_line(run: Run, text: bytes, said: str) -> None:
    code, out, err = run("services", "-", stdin=text)
    assert (code, out) == (2, "")
    assert said in err


def test_the_screen_gets_no_binary(run: Run, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, _, err = run("jobs", str(job), "--format", "pdf")
    assert code == 2
    assert "--output answer.pdf" in err


def test_a_job_without_any_answers_has_its_plans(run: Run) -> None:
    """What was not told is a planning value, and said to be one."""
    for command, kind in (("serve", "online_inference"), ("services", "web"), ("jobs", "recsys")):
        code, out, err = run(command, "-", *DAY, stdin=f'kind = "{kind}"'.encode())
        assert (code, err) == (0, "")
        assert parse({"kind": kind}).name == ""
        assert "a month" in out
