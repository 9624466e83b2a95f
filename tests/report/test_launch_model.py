"""Launch kits: the model's configuration, from widths or as it was brought."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from engine.errors import InputError
from engine.estimate.model_shape import shape_from_config
from engine.estimate.shape_from_size import shape_from_size
from engine.report.launch import launch_files
from engine.report.launch.job import config_of_shape, rounded
from tests.report.launch_sample import (
    CASES,
    DEEPSEEK,
    LLAMA_405B,
    argument,
    ask,
    files,
    plan,
)


@pytest.mark.parametrize("size", [(7, None), (70, None), (30, 3.3), (235, 22)])
def test_a_shape_from_a_size_becomes_a_configuration_of_that_size(
    size: tuple[float, float | None],
) -> None:
    shape = shape_from_size(*size)
    read = shape_from_config(config_of_shape(rounded(shape), 4096))
    # Rounding a width of 28,393 to blocks of 256 moves it by at most 0.5%, small ones by more.
    assert read.total_params == pytest.approx(shape.total_params, rel=0.06)
    assert read.exact


def test_a_configuration_that_was_brought_is_the_one_that_is_trained() -> None:
    config = {"model_type": "llama", "hidden_size": 64, "note": "ü ${HOME}"}
    kit = launch_files(plan(), ask(config=json.dumps(config)))
    assert json.loads(kit["model/config.json"]) == config
    assert json.loads(kit["train.json"])["model"] == "model"


def test_weights_to_be_tuned_come_from_their_id() -> None:
    settings = json.loads(files("fine-tuning")["train.json"])
    assert (settings["model"], settings["from_pretrained"]) == ("Qwen/Qwen3-8B", True)


def test_latent_attention_needs_the_configuration() -> None:
    asked = ask(nodes=256, shape=shape_from_config(DEEPSEEK), model="org/m")
    with pytest.raises(InputError, match="kv_lora_rank is needed for latent attention"):
        launch_files(plan(gpus=2048, pp=16, ep=64, zero_stage=1), asked)


@pytest.mark.parametrize("odd", ["x'; touch hacked; '", "$(id)", {"a": 1}, [], True, -1, 1e300])
def test_an_odd_norm_in_a_configuration_is_left_at_the_usual_one(odd: object) -> None:
    the_plan, asked = CASES["uneven stages"]
    asked = replace(asked, config=json.dumps({**LLAMA_405B, "rms_norm_eps": odd}))
    text = launch_files(the_plan, asked)["megatron_args.sh"]
    assert argument(text, "norm-epsilon") == "1e-05"


@pytest.mark.parametrize("kind", [[], {"a": 1}, 7])
def test_a_model_type_that_is_no_word_is_refused_with_words(kind: object) -> None:
    the_plan, asked = CASES["uneven stages"]
    asked = replace(asked, config=json.dumps({**LLAMA_405B, "model_type": kind}))
    with pytest.raises(InputError, match="can't be written as arguments of Megatron-LM"):
        launch_files(the_plan, asked)
