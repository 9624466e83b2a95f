"""No text of a user's gets to be code: not in shell, YAML, JSON, Markdown or a queue's options."""

from __future__ import annotations

import importlib
import json
import re
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from engine.errors import InputError
from engine.report.launch import launch_files
from engine.report.launch.quote import markdown, one_line, scalar, shell, slug
from engine.report.launch.quote import yaml as to_yaml
from tests.report.launch_sample import CASES, ask, plan
from tests.report.test_launch_slurm import sbatch
from tests.report.test_launch_tools import schema

parser: Any = importlib.import_module("yaml")
jsonschema: Any = importlib.import_module("jsonschema")

ATTACKS = (
    "$(touch hacked)", "`touch hacked`", "'; touch hacked; '", '"; touch hacked; "',
    "x\ntouch hacked", "x\r\ntouch hacked", "\\", "\\'", "'\\''", "${HOME}", "$HOME", "!!", "*",
    "~", "-rf", "--load", "{{ 7 * 7 }}", "{% raw %}", "a: b", "- a", "# no", "%TAG", "&a", "*a",
    "|", ">", "yes", "null", "0x1", "1e3", "2026-01-01", "\ufeff", "\u2028", "\u202e", "\x00",
    "\x7f", "\x85", "\ud800", "😀", "日本 語", "é", "```\n# x", "<script>", "]]>", "EOF",
    "a b", "\t", "x\n#SBATCH --wrap=id", "x\n  run: id", ",", "a,b", "'", '"', "=", "a=b",
)  # fmt: skip
ANY = st.one_of(st.sampled_from(ATTACKS), st.text(max_size=40),
                st.text(alphabet=string.punctuation + " \n\t$`", max_size=20))  # fmt: skip
PATHS = ANY.map(lambda text: f"/shared/{text}")


def sourced(env: str, names: list[str], folder: Path) -> dict[str, str]:
    """What a shell has in these variables after reading a file."""
    (folder / "job.env").write_text(env, encoding="utf-8")
    show = "".join(f'printf "%s\\0" "${name}"; ' for name in names)
    done = subprocess.run(
        ["bash", "-c", f"set -eu; . ./job.env; {show}"], cwd=folder, capture_output=True, check=True
    )
    assert sorted(p.name for p in folder.iterdir()) == ["job.env"]  # nothing else was run
    assert done.stderr == b""
    return dict(zip(names, done.stdout.decode().split("\0"), strict=False))


@settings(max_examples=60)
@given(name=ANY, dataset=PATHS, saved=PATHS, tokenizer=PATHS)
def test_a_shell_gets_every_text_as_it_is(
    name: str, dataset: str, saved: str, tokenizer: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asked = {"run_name": name, "dataset": dataset, "checkpoint_dir": saved, "tokenizer": tokenizer}
    where, kit = "", {}
    try:
        kit = launch_files(plan(tp=8, zero_stage=1), ask(**asked))
    except InputError as error:
        where = error.where
    if where:
        # What no file can carry on one line is refused, by the field's name.
        assert not asked[where].isprintable() or not asked[where].strip("/")
        return
    names = ["RUN_NAME", "DATASET", "CHECKPOINT_DIR", "TOKENIZER"]
    got = sourced(kit["job.env"], names, tmp_path_factory.mktemp("env"))
    assert got["RUN_NAME"] == (one_line(name) or "Training run")
    assert (got["DATASET"], got["CHECKPOINT_DIR"]) == (dataset, saved)
    assert got["TOKENIZER"] == tokenizer


@settings(max_examples=60)
@given(name=ANY, dataset=PATHS, saved=PATHS)
def test_a_user_s_text_stands_in_job_env_and_the_readme_alone(
    name: str, dataset: str, saved: str
) -> None:
    try:
        asked = ask(run_name=name, dataset=dataset, checkpoint_dir=saved)
    except InputError:
        assume(False)
    usual, kit = launch_files(*CASES["fsdp"]), launch_files(plan(), asked)
    for file, text in kit.items():
        if file in ("job.env", "README.md"):
            continue
        # The other files differ from those of a harmless run by its short name alone.
        assert text == usual[file].replace("our-70b", slug(name)), file
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,43}", slug(name))


@settings(max_examples=60)
@given(name=ANY)
def test_a_run_s_name_leaves_queue_and_cloud_files_readable(name: str) -> None:
    kit = launch_files(plan(), ask(run_name=name))
    options = sbatch(kit["slurm.sbatch"])
    assert options["job-name"] == slug(name)
    assert set(options) == set(sbatch(launch_files(*CASES["fsdp"])["slurm.sbatch"]))
    task = parser.safe_load(kit["skypilot.yaml"])
    jsonschema.validate(task, schema("skypilot_task.schema.json"))
    assert task["name"] == slug(name)
    heading = kit["README.md"].splitlines()[0]
    assert heading == f"# {markdown(one_line(name) or 'Training run')}"
    assert kit["README.md"].count("\n## ") == launch_files(*CASES["fsdp"])["README.md"].count(
        "\n## "
    )


@settings(max_examples=100)
@given(text=st.text(max_size=60))
@example(text="\ud800")
def test_a_configuration_s_texts_come_back_as_they_were(text: str) -> None:
    config = {"model_type": "llama", "note": text, text: 1}
    kit = launch_files(plan(), ask(config=json.dumps(config)))
    assert json.loads(kit["model/config.json"]) == config
    assert kit["model/config.json"].isascii()


@given(text=ANY)
@settings(max_examples=100)
def test_one_word_of_shell_is_one_word(text: str) -> None:
    assume("\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text))
    done = subprocess.run(
        ["bash", "-c", f'set -- {shell(text)}; printf "%s\\0%s" "$#" "$1"'],
        capture_output=True, check=True,
    )  # fmt: skip
    assert done.stdout == b"1\0" + text.encode()


SCALARS = st.one_of(
    ANY.filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t)),
    st.integers(-(10**9), 10**9), st.booleans(), st.none(),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: round(x, 3)).filter(
        lambda x: "e" not in repr(x)
    ),
)  # fmt: skip
LINES = st.lists(
    st.text(alphabet=string.ascii_letters + string.punctuation, min_size=1, max_size=9), min_size=2
)
VALUES = st.recursive(
    st.one_of(SCALARS.filter(lambda v: not isinstance(v, str) or "\n" not in v),
              LINES.map(lambda lines: "\n".join(lines) + "\n")),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3),
        st.dictionaries(ANY.filter(lambda t: not any("\ud800" <= c <= "\udfff" for c in t)), inner,
                        min_size=1, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300)
@given(value=st.dictionaries(st.sampled_from(["a", "run", "b c"]), VALUES, min_size=1))
def test_yaml_comes_back_as_it_was(value: dict[str, Any]) -> None:
    assert parser.safe_load(to_yaml(value)) == value


@pytest.mark.parametrize(
    "text", [a for a in ATTACKS if not any("\ud800" <= c <= "\udfff" for c in a)]
)
def test_yaml_reads_an_attack_as_text(text: str) -> None:
    assert parser.safe_load(f"a: {scalar(text)}\n") == {"a": text}


@given(text=ANY.map(one_line).filter(bool))
def test_a_code_span_of_markdown_holds_exactly_the_text(text: str) -> None:
    span = markdown(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    assert inner.strip() == text
    assert "\n" not in span
