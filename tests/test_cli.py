"""The engine from a shell: what each command prints, and that nothing ends in a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine.catalogue
from engine.cli import main
from engine.report.link import decode_query
from engine.report.table import to_json
from engine.workload.examples import EXAMPLES
from engine.workload.files import workload_from_text
from engine.workload.settings import Settings
from engine.workload.workload import Workload, parse
from tests.report.sample import assessment

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).resolve().parents[1]


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
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The answer made by hand in place of the computed one; holds what was asked."""
    found: list[Any] = []

    def assess(workload: Workload, *, settings: Settings, today: date) -> Any:
        found.append((workload, today))
        return assessment()

    monkeypatch.setitem(sys.modules, "engine.assess", SimpleNamespace(assess=assess))
    return found


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    path.write_text('kind = "lora"\nmodel_params_b = 7\n', encoding="utf-8")
    return path


def test_the_answer_is_printed_as_text(run: Run, asked: list[Any], job: Path) -> None:
    code, out, err = run("assess", str(job), "--today", "2026-12-01")
    assert (code, err) == (0, "")
    assert out.startswith("Rent two L4 by the month")
    assert asked == [(parse({"kind": "lora", "model_params_b": 7}), date(2026, 12, 1))]


def test_a_link_is_added_on_demand(run: Run, asked: list[Any], job: Path) -> None:
    for form in ("text", "csv", "json"):
        arguments = ("assess", str(job), "--format", form, "--today", "2026-12-01")
        link = "http://127.0.0.1:8501/recommendation?v=1&kind=lora&params_b=7&d=2026-12-01"
        assert link not in run(*arguments)[1]
        assert link in run(*arguments, "--link")[1]
        assert "https://x.example/r?v=1&kind" in run(*arguments, "--link", "https://x.example/r")[1]


@pytest.mark.parametrize(
    ("form", "start"),
    [("csv", b"\xef\xbb\xbfsection"), ("xlsx", b"PK"), ("pdf", b"%PDF"), ("json", b"{")],
)
def test_each_format_goes_to_a_file_or_the_output(
    run: Run, asked: list[Any], job: Path, form: str, start: bytes
) -> None:
    target = job.parent / f"answer.{form}"
    assert run("assess", str(job), "--format", form, "--output", str(target)) == (0, "", "")
    assert target.read_bytes().startswith(start)
    code, out, _ = run("assess", str(job), "--format", form)
    assert code == 0
    assert out.encode("utf-8", "surrogateescape").startswith(start)


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("csv", b"\xef\xbb\xbfpart,way"),
        ("xlsx", b"PK"),
        ("json", b"{"),
        ("text", b"Spot is the cheapest way to pay. 8 "),
    ],
)
def test_the_costs_go_to_a_file_or_the_output(
    run: Run, tmp_path: Path, form: str, start: bytes
) -> None:
    written = run("example", "client-40-to-85")[1].encode()
    target = tmp_path / f"costs.{form}"
    given = ("costs", "-", "--format", form, "--today", "2026-12-01")
    assert run(*given, "--output", str(target), stdin=written) == (0, "", "")
    assert target.read_bytes().startswith(start)
    code, out, _ = run(*given, stdin=written)
    assert code == 0
    assert out.encode("utf-8", "surrogateescape") == target.read_bytes()


def test_the_costs_of_other_hardware_are_a_choice(run: Run) -> None:
    written = run("example", "client-40-to-85")[1].encode()
    given = ("costs", "-", "--today", "2026-12-01", "--format", "json")
    told = json.loads(run(*given, stdin=written)[1])
    other = next(c for c in told["choices"] if c["id"] != told["hardware"])
    chosen = json.loads(run(*given, "--hardware", other["id"], stdin=written)[1])
    assert (chosen["hardware"], chosen["hardware_label"]) == (other["id"], other["label"])
    for way in chosen["ways"]:
        if way["table"] is not None:
            total = sum(row["usd_total"] for row in way["table"])
            assert total == pytest.approx(way["headline"]["total"]["likely"], abs=0.005)
    code, out, err = run(*given, "--hardware", "abacus", stdin=written)
    assert (code, out) == (2, "")
    assert "“abacus” is not among the candidates" in err


def test_a_workload_is_read_from_the_standard_input(run: Run, asked: list[Any]) -> None:
    assert run("assess", "-", stdin=b'{"kind": "etl"}')[0] == 0
    assert asked[0][0] == parse({"kind": "etl"})


@pytest.mark.parametrize("name", ["fraud-detection", "legacy-fortran"])
def test_the_shell_gives_what_the_page_gives(run: Run, name: str) -> None:
    """From the example as the shell prints it to the answer, nothing made by hand."""
    from engine.assess import assess

    written = run("example", name)[1]
    given = ("assess", "-", "--today", "2026-12-01", "--format")
    code, out, err = run(*given, "json", stdin=written.encode())
    assert (code, err) == (0, "")
    answer = assess(EXAMPLES[name].workload, today=date(2026, 12, 1))
    assert json.loads(out) == json.loads(json.dumps(to_json(answer)))
    assert run(*given, "text", stdin=written.encode())[1].startswith(answer.sentence[:40])
    assert run(*given, "pdf", stdin=written.encode())[1].startswith("%PDF")


def test_the_examples_are_listed_and_printed(run: Run) -> None:
    assert run("example", "--list")[1].splitlines() == list(EXAMPLES)
    for name, example in EXAMPLES.items():
        code, out, _ = run("example", name)
        assert code == 0
        assert out.startswith(f"# {example.title}\n")
        assert workload_from_text(out) == example.workload


def test_the_schema_names_every_field(run: Run) -> None:
    schema = json.loads(run("schema")[1])
    assert set(schema["properties"]) == set(Workload.model_fields)


def test_the_link_of_a_file_opens_the_same_workload(run: Run, job: Path) -> None:
    assert run("link", str(job))[1] == "v=1&kind=lora&params_b=7\n"
    address = run("link", str(job), "--address", "https://x.example/r")[1].strip()
    assert decode_query(address) == (parse({"kind": "lora", "model_params_b": 7}), [])


@pytest.mark.parametrize(("errors", "code"), [([], 0), (["offers.csv line 3"], 1)])
def test_faults_of_the_data_are_told_by_the_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, errors: list[str], code: int
) -> None:
    folders: list[Path | None] = []

    def check_report(folder: Path | None = None) -> tuple[str, list[str]]:
        folders.append(folder)
        return "7 tables", errors

    monkeypatch.setattr(engine.catalogue, "check_report", check_report, raising=False)
    assert run("check-data") == (code, "7 tables\n", "")
    assert run("check-data", str(tmp_path))[0] == code
    assert folders == [None, tmp_path]


def test_a_models_shape_is_printed(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shapes = SimpleNamespace(shape_from_text=json.loads, shape_json=lambda shape: {"of": shape})
    monkeypatch.setitem(sys.modules, "engine.estimate.model_shape", shapes)
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 4096}', encoding="utf-8")
    assert json.loads(run("shape", str(path))[1]) == {"of": {"hidden_size": 4096}}


def test_a_backtest_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = {"rows": 3, "median_error": 0.123456, "by_source": [{"a": 1}, {"b": 2}]}
    fake = SimpleNamespace(backtest_training=lambda path: {"file": path.name, **result})
    monkeypatch.setitem(sys.modules, "engine.calibrate.backtest_training", fake)
    path = tmp_path / "runs.csv"
    path.write_text("a,b\n", encoding="utf-8")
    assert json.loads(run("backtest", "training", str(path), "--format", "json")[1])["rows"] == 3
    assert run("backtest", "training", str(path))[1] == (
        "file: runs.csv\nrows: 3\nmedian error: 0.1235\nby source:\n  - a: 1\n  - b: 2\n"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("assess", "none.toml"), "none.toml: there is no such file"),
        (("assess", "FOLDER"), "this is a folder"),
        (("assess", "JUNK"), "junk: this is no text file"),
        (("link", "HUGE"), "huge: the file is too large (at most 1 MB is read)"),
        (("shape", "none.json"), "none.json: there is no such file"),
        (("backtest", "training", "none.csv"), "none.csv: there is no such file"),
        (("backtest", "training", "-"), "reads a file"),
        (("check-data", "none"), "none: there is no such folder"),
        (("example", "lora-7"), "did you mean lora-7b?"),
        (("example",), "example --list"),
        (("assess", "JOB", "--today", "tomorrow"), "write it as 2026-12-01"),
        (("assess", "JOB", "--format", "docx"), "docx"),
        (("assess", "JOB", "--output", "FOLDER"), "this is a folder"),
        (("assess", "JOB", "--output", "FOLDER/none/answer.txt"), "there is no such folder"),
        (("assess",), "FILE"),
        (("fly",), "fly"),
        ((), "COMMAND"),
    ],
)
def test_bad_input_is_told_in_a_sentence(
    run: Run, asked: list[Any], tmp_path: Path, job: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "junk").write_bytes(bytes(range(256)))
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(10_000_000_000)
    places = {"FOLDER": tmp_path, "JUNK": tmp_path / "junk", "HUGE": tmp_path / "huge", "JOB": job}
    put = [
        str(places.get(a.split("/")[0], a)) + ("/" + a.partition("/")[2] if "/" in a else "")
        for a in arguments
    ]
    code, out, err = run(*put)
    assert (code, out) == (2, "")
    assert words in err
    assert "Traceback" not in err


def test_the_screen_gets_no_binary(
    run: Run, asked: list[Any], job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, _, err = run("assess", str(job), "--format", "pdf")
    assert code == 2
    assert "--output answer.pdf" in err


def test_a_fault_of_our_own_is_told_as_such(
    run: Run, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assess(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setitem(sys.modules, "engine.assess", SimpleNamespace(assess=assess))
    code, _, err = run("assess", str(job))
    assert code == 2
    assert err == "a fault of ClusterFit, not yours: ZeroDivisionError: division by zero\n"


@given(st.binary(max_size=100))
def test_no_bytes_reach_a_traceback(junk: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out, err = (io.TextIOWrapper(io.BytesIO()) for _ in range(2))
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(junk)))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = main(["link", "-"])
        told = err.buffer.getvalue() if isinstance(err.buffer, io.BytesIO) else b""
    assert code in (0, 2)
    assert (code == 2) == bool(told)
    assert b"not yours" not in told


def test_the_list_of_examples_loads_nothing_heavy() -> None:
    code = (
        "import sys; from engine.cli import main; main(['example', '--list']); "
        "print(*{'numpy', 'scipy', 'streamlit'} & set(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == list(EXAMPLES)
    assert done.stderr.strip() == ""


def test_a_reader_that_leaves_is_no_fault() -> None:
    done = subprocess.run(
        f"{sys.executable} -m engine schema | head -c 10",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert len(done.stdout) == 10
    assert done.stderr == ""


def test_prices_are_refreshed_from_a_file_into_a_second_table(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERFIT_PRICES", str(tmp_path / "updates"))
    file = tmp_path / "aws.csv"
    head = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,SpotPrice\n"
    # The shipped prices are 55.04 and 3.2256: 0.9 is 3.584 times cheaper.
    file.write_text(
        head
        + "p5.48xlarge,H100,8,192,2048,60,us-east-1,\n"
        + "m7i.16xlarge,,,64,256,0.9,us-east-1,\n"
    )
    code, out, err = run("update-prices", "--from", str(file))
    assert (code, err) == (1, "")
    assert "1 price refreshed: 1 moved" in out
    assert "--accept-moves" in out
    assert "3.58 times cheaper" in out
    code, out, _ = run("update-prices", "--from", str(file), "--accept-moves")
    assert code == 0
    assert "2 prices refreshed" in out
    (table,) = (tmp_path / "updates").iterdir()
    assert "refreshed" in run("check-data")[1]
    assert table.name in run("check-data")[1]


def test_a_price_file_that_is_none_is_refused_in_a_sentence(run: Run, tmp_path: Path) -> None:
    code, _, err = run("update-prices", "--from", str(tmp_path / "none.csv"))
    assert code == 2
    assert err.startswith("none.csv: ")
    (tmp_path / "list.csv").write_text("gpu,price\nH100,2\n")
    code, _, err = run("update-prices", "--from", str(tmp_path / "list.csv"))
    assert code == 2
    assert "SkyPilot" in err


def test_without_a_network_the_prices_stay_and_their_age_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(address: str) -> bytes:
        raise OSError("Name or service not known")

    monkeypatch.setattr("engine.catalogue.update.fetch._download", unreachable)
    monkeypatch.setattr("engine.catalogue.update.fetch._library", lambda: None)
    monkeypatch.setenv("CLUSTERFIT_PRICES", str(tmp_path))
    code, out, err = run("update-prices")
    assert (code, err) == (3, "")
    assert "nothing was refreshed or written" in out
    assert "works offline" in out
    assert "days old" in out
    assert "--from" in out
    assert not list(tmp_path.iterdir())


TRAINING = b"""kind = "llm_pretraining"
train_tokens_b = 100
model_params_b = 8
deadline_days = 20

[training]
gpu = "h100-sxm-80gb"
most_gpus = 128
"""


def test_a_training_plan_is_told_in_words_and_as_values(run: Run, tmp_path: Path) -> None:
    code, out, err = run("train", "-", "--today", "2026-12-01", stdin=TRAINING)
    assert (code, err) == (0, "")
    assert "H100" in out.splitlines()[0]
    assert "Memory of the fullest GPU, GiB" in out
    config = tmp_path / "config.json"
    config.write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, '
        '"intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, '
        '"num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false}',
        encoding="utf-8",
    )
    given = ("train", "-", "--config", str(config), "--today", "2026-12-01")
    told = json.loads(run(*given, "--format", "json", stdin=TRAINING)[1])
    assert told["plan"]["gpu"] == "h100-sxm-80gb"
    assert told["plan"]["plan"]["gpus"] <= 128
    kit = tmp_path / "kit.zip"
    assert run(*given, "--format", "kit", "--output", str(kit), stdin=TRAINING) == (0, "", "")
    assert kit.read_bytes().startswith(b"PK")


def test_work_that_is_no_training_is_told_so(run: Run) -> None:
    code, out, err = run("train", "-", stdin=b'kind = "etl"')
    assert code != 0
    assert out == ""
    assert "language model" in err


@pytest.mark.parametrize("command", ["assess", "costs"])
def test_a_quote_for_unknown_hardware_is_told_beside_the_answer(run: Run, command: str) -> None:
    body = json.dumps({"kind": "llm_finetuning", "quotes": ["h100-sxm:on_demand:1.2"]}).encode()
    code, out, err = run(command, "-", "--format", "csv", stdin=body)
    assert code == 0
    assert "left out of the ranking" in out
    assert err.startswith("Your quote for h100-sxm, on demand at $1.20 an hour, is left out of")
    assert "Near it: h100-sxm-80gb" in err
    code, _, err = run(command, "-", stdin=body.replace(b"h100-sxm:", b"h100-sxm-80gb:"))
    assert (code, err) == (0, "")
