"""From a model's `config.json` to the shape that the estimates read.

Counts are those of the logical model, each parameter once: precision and quantization change the
bytes, not the count. Where a count does not follow the architecture's own definition the shape
says "approximate" and why.
"""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from engine.errors import ImportFileError
from engine.estimate.architectures import (
    decoder,
    hybrid,
    other,
    pairs,
    sequence_experts,
    special,
    staged,
    terms,
)
from engine.estimate.architectures.heads import as_named
from engine.estimate.architectures.outline import outline
from engine.estimate.architectures.reading import ALIASES, Config
from engine.estimate.architectures.specs import BERT_LIKE, SPECS
from engine.estimate.kv_cache import kv_cache_bytes_per_token
from engine.estimate.shape import ModelShape
from engine.wording import rough

LARGEST_BYTES = 5_000_000
MOST_PARAMS = 1e15
NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
ADVICE = "the config.json that lies beside the model's weights"
SIZES = "the config.json that lies beside it"
# Readers that count by themselves, by model type.
OWN = (special.READERS, hybrid.READERS, sequence_experts.READERS)
# Words of reasons for which a count can be far off, and how a user can tell.
UNCOUNTED = ("not known here", "not counted", "counted like", "read like")
CHECK = (
    "compare the total with total_size in model.safetensors.index.json, "
    "two bytes a parameter at 16 bits"
)
# Files that lie beside a config.json, by a key that only they have.
LOOKALIKES = (
    ({"weight_map"}, "is the index of the weights, it states no widths", SIZES),
    ({"tokenizer_class", "added_tokens_decoder"}, "describes a tokenizer, not a model", SIZES),
    ({"image_processor_type", "processor_class"}, "describes a preprocessor, not a model", SIZES),
    ({"zero_optimization"}, "describes a training engine, not a model", SIZES),
    (
        {"bos_token_id", "eos_token_id", "max_new_tokens", "do_sample"},
        "is a generation_config.json: it states no sizes",
        ADVICE,
    ),
)


def shape_from_text(text: bytes | str, name: str = "") -> ModelShape:
    """The shape of a `config.json` as uploaded.

    Raises
    ------
    ImportFileError : with what is wrong, where, and what would be right
    """
    return shape_from_config(_json(text, name), name)


def shape_from_config(data: Any, name: str = "") -> ModelShape:
    """The shape of a parsed `config.json`.

    Raises
    ------
    ImportFileError : when it is no model's configuration or states too little
    """
    if isinstance(data, list):
        if len(data) != 1:
            raise _error(f"is a list of {len(data)} things", name, ADVICE)
        data = data[0]
    if not isinstance(data, dict):
        raise _error("is no configuration", name, ADVICE)
    _refuse_lookalikes(data, name)
    config = Config(_unified(data, name), name)
    shape = pairs.of_parts(config, _counted) or as_named(config, _counted(config))
    if shape.kind == "encoder" and config.model_type:
        shape = replace(shape, kv_layers=0)  # it reads a text once and keeps nothing
    why = shape.why_approximate
    if not shape.exact and any(words in why for words in UNCOUNTED):
        shape = replace(shape, why_approximate=f"{why}; {CHECK}")
    return replace(shape, note=_doubt(shape, config) or shape.note)


def _doubt(shape: ModelShape, config: Config) -> str:
    """Words when the name promises another size than the file describes: a test's cut-down file."""
    named = f"{config.raw.get('_name_or_path') or ''} {config.name}"
    for number in re.findall(r"(?<![\w.])(\d{1,4}(?:\.\d+)?)\s?[bB](?![a-zA-Z0-9])", named):
        size = float(number) * 1e9
        if size > 0 and not 0.5 < shape.total_params / size < 2:
            return (f"the name says {number}B, the sizes in the file make "
                    f"{rough(shape.total_params / 1e9)}B: check that it is the whole "
                    "model's config.json")  # fmt: skip
    return ""


def _json(text: bytes | str, name: str) -> Any:
    if isinstance(text, bytes):
        if len(text) > LARGEST_BYTES:
            raise _error(f"has {len(text):,} bytes", name, "a config.json of a few kB")
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _error("is no text", name, ADVICE) from None
    text = text.removeprefix("\ufeff").strip()
    if not text:
        raise _error("is empty", name, ADVICE)
    if text.startswith("version https://git-lfs"):
        raise _error(
            "is a Git LFS pointer, not the file itself", name, "fetch it with `git lfs pull`"
        )
    if re.fullmatch(r"[./\w-]+", text) and "/" in text:
        raise _error("is a link stored as text", name, "the file that it points to")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        hint = "JSON knows no comments" if re.search(r"^\s*(//|#)", text, re.M) else ""
        hint = hint or ("a comma stands before a closing bracket" if re.search(
            r",\s*[}\]]", text) else getattr(error, "msg", "it is nested too deep"))  # fmt: skip
        raise _error(f"is no valid JSON (line {line}: {hint})", name, ADVICE) from None


def _error(wrong: str, name: str, right: str) -> ImportFileError:
    return ImportFileError(wrong, where=name or "config.json", right=right)


def _refuse_lookalikes(data: dict[str, Any], name: str) -> None:
    """Files that people bring by mistake."""
    if not data:
        raise _error("is an empty object", name, ADVICE)
    if "peft_type" in data or "lora_alpha" in data:
        base = str(data.get("base_model_name_or_path") or "the base model")[:80]
        raise _error("describes an adapter, not a model", name, f"the config.json of {base}")
    pipeline = str(data.get("_class_name") or "")
    if pipeline.endswith("Pipeline"):
        raise _error("lists the parts of an image pipeline", name, "the config.json of its unet")
    if pipeline and pipeline != "UNet2DConditionModel":
        raise _error(f"describes a {pipeline[:60]}, which is not known here", name,
                     "give the number of parameters instead")  # fmt: skip
    if {"model_type", "architectures", "dim", "text_config"} & data.keys() or any(
        key in data for names in ALIASES.values() for key in names
    ):
        return
    for keys, wrong, right in LOOKALIKES:
        if keys & data.keys():
            raise _error(_weighed(data) + wrong, name, right)


def _weighed(data: dict[str, Any]) -> str:
    """What an index of weights tells of a model's size, as the beginning of a sentence."""
    told = data.get("metadata")
    stated = told.get("total_size") if isinstance(told, dict) else None
    if not isinstance(stated, int) or isinstance(stated, bool) or not 0 < stated < MOST_PARAMS:
        return ""
    return (f"states {stated:,} bytes, which is {rough(stated / 2e9)}B parameters at 16 bits, "
            "but it ")  # fmt: skip


def _unified(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Native names of Meta's params.json and DeepSeek's own code as the usual ones."""
    if "dim" in data and "n_layers" in data and not {"hidden_size", "model_type"} & data.keys():
        if "kv_lora_rank" in data or "n_routed_experts" in data:
            return _deepseek_native(data)
        return _meta_params(data, name)
    return data


def _meta_params(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Meta's and Mistral's own names; Meta's give the MLP's width by a rule, Mistral's as it is."""
    native = Config(data, name)
    dim = native.whole("dim")
    heads = native.whole("n_heads")
    ffn = int(8 * dim / 3)
    factor = data.get("ffn_dim_multiplier")
    if isinstance(factor, int | float) and 0 < factor < 1000:
        ffn = int(ffn * float(factor))
    multiple = native.whole("multiple_of", 256)
    wide = native.whole("hidden_dim", multiple * math.ceil(ffn / multiple))
    vocab = data.get("vocab_size")
    moe = data.get("moe")
    found: dict[str, Any] = {
        "model_type": "llama", "hidden_size": dim, "num_hidden_layers": data["n_layers"],
        "num_attention_heads": heads,
        "num_key_value_heads": native.whole("n_kv_heads", heads), "intermediate_size": wide,
        "vocab_size": vocab if isinstance(vocab, int) and vocab > 0 else 32_000,
        "tie_word_embeddings": bool(data.get("tied_embeddings", False)),
    }  # fmt: skip
    if native.has("head_dim"):
        found["head_dim"] = data["head_dim"]
    if isinstance(moe, dict) and moe:
        found |= {"model_type": "mixtral", "num_local_experts": moe.get("num_experts"),
                  "num_experts_per_tok": moe.get("num_experts_per_tok")}  # fmt: skip
    return found


def _deepseek_native(data: dict[str, Any]) -> dict[str, Any]:
    names = {
        "hidden_size": "dim", "intermediate_size": "inter_dim", "moe_intermediate_size":
        "moe_inter_dim", "num_hidden_layers": "n_layers", "first_k_dense_replace":
        "n_dense_layers", "num_attention_heads": "n_heads", "n_routed_experts": "n_routed_experts",
        "n_shared_experts": "n_shared_experts", "num_experts_per_tok": "n_activated_experts",
        "q_lora_rank": "q_lora_rank", "kv_lora_rank": "kv_lora_rank", "qk_nope_head_dim":
        "qk_nope_head_dim", "qk_rope_head_dim": "qk_rope_head_dim", "v_head_dim": "v_head_dim",
        "vocab_size": "vocab_size",
    }  # fmt: skip
    found = {new: data[old] for new, old in names.items() if old in data}
    # The native code keeps the routers' correction biases as parameters.
    return {**found, "model_type": "deepseek_v3", "tie_word_embeddings": False,
            "router_correction": True}  # fmt: skip


def _counted(config: Config) -> ModelShape:
    """Counts by the formula of the file's class; else by hand; else like Llama, and it is said."""
    own = next((r[config.model_type] for r in OWN if config.model_type in r), None)
    if own is not None:
        return own(config)
    if config.has("down_block_types") and config.has("block_out_channels"):
        return special.unet(config)
    formula = terms.formula_of(config.raw, config.model_type)
    if formula is not None and "vision" in formula.roles and _foreign_tower(config):
        return _by_hand(config)
    if formula is None or config.flag("router_correction"):
        return _by_hand(config)
    if terms.other_parts(formula, config):
        by_hand = _readable_by_hand(config)
        if by_hand:
            return by_hand
    counted = terms.count(formula, config)
    if counted.missing:
        by_hand = _readable_by_hand(config)
        if by_hand and (by_hand.exact or not _grows_with_layers(formula)):
            return by_hand
    total = counted.total
    base = _outlined(config, total)
    of_layers = formula.guards.get(ALIASES["layers"][0], "")
    routed = counted.routed
    if counted.missing and of_layers.isdigit() and base.layers != int(of_layers):
        # Holds for one depth: the rest of the network grows with the layers that the file has.
        words = round(base.embedding_params)
        total = words + round((total - words) * base.layers / int(of_layers))
        routed = round(routed * base.layers / int(of_layers))
    if not 0 < total < MOST_PARAMS:
        raise _error(f"describes {total:,} parameters", config.name, ADVICE)
    active = total - routed
    if routed and base.experts:
        active += round(routed * min(base.experts_per_token / base.experts, 1.0))
    return replace(
        base, total_params=float(total), active_params=float(active), exact=not counted.missing,
        why_approximate=counted.missing,
    )  # fmt: skip


def _grows_with_layers(formula: terms.Formula) -> bool:
    """Whether a class's formula counts layers; some hold for one depth, which a guard tells."""
    names = (*ALIASES["layers"], "_layers", ":")
    return any(name in written for written in formula.roles.values() for name in names)


def _foreign_tower(config: Config) -> bool:
    """Whether the image tower is written in its owner's names, which the formula doesn't read."""
    tower = config.raw.get("vision_config")
    if not isinstance(tower, dict) or tower.get("hidden_size") or tower.get("embed_dim"):
        return False
    return any(key.endswith("_hidden_size") and key.startswith("vt_") for key in tower)


def _outlined(config: Config, total_params: float) -> ModelShape:
    """Widths and layers: as read by hand where the architecture has its own reader."""
    if config.model_type in SPECS or config.model_type in other.READERS:
        return _by_hand(config)
    return outline(config, total_params)


def _around(config: Config, inner: dict[str, Any]) -> ModelShape | None:
    """An unknown whole around a text part that is known: the text exactly, the tower roughly."""
    kind = str(inner.get("model_type") or "")
    if (
        kind in SPECS
        or kind in other.READERS
        or kind == config.model_type
        or not (any(kind in readers for readers in OWN) or terms.formula_of({}, kind))
    ):
        return None
    text = dict(inner)
    for key in ("tie_word_embeddings", "quantization_config", "vocab_size"):
        if config.has(key) and text.get(key) is None:
            text[key] = config.raw[key]
    text.pop("architectures", None)
    base = _counted(Config(text, config.name, nested=True))
    tower = config.raw.get("vision_config")
    extra, why = 0, "parts beside the text are not counted"
    if isinstance(tower, dict):
        extra, why = other.tower_like_vit(Config(tower, config.name, nested=True))
    return replace(
        base, total_params=base.total_params + extra, active_params=base.active_params + extra,
        exact=False, why_approximate=base.why_approximate or why,
        kind="vision-language" if isinstance(tower, dict) else base.kind,
        name=str(config.raw.get("_name_or_path") or config.model_type)[:80],
    )  # fmt: skip


def _readable_by_hand(config: Config) -> ModelShape | None:
    """The same; None where the file lacks what that needs."""
    with suppress(ImportFileError):
        return _by_hand(config)
    return None


def _by_hand(config: Config) -> ModelShape:
    """Dispatch by the kind of model; unknown ones are read like Llama, and it is said."""
    kind = config.model_type
    reader = other.READERS.get(kind)
    if reader is not None and not any(isinstance(config.raw.get(k), dict) for k in NESTED):
        return reader(config)
    if kind in BERT_LIKE or (not kind and config.has("type_vocab_size")):
        return other.bert(config)
    usual = staged.usual_sizes().get(kind)
    if usual is not None:
        return _by_usual_size(config, usual)
    for key in NESTED:
        inner = config.raw.get(key)
        if isinstance(inner, dict):
            return _around(config, inner) or other.vision_language(config, inner, key)
    if kind in SPECS:
        return decoder.shape(config, SPECS[kind], exact=True, why="")
    return _like(config)


def _by_usual_size(config: Config, usual: staged.UsualSize) -> ModelShape:
    """As the library counts its usual size; larger or smaller as a reading of the file says."""
    if usual.read:
        with suppress(ImportFileError):
            like = _like(config)
            total = like.total_params * usual.params / usual.read
            return replace(like, total_params=total, active_params=total, exact=False,
                           why_approximate=staged.SCALED_WHY)  # fmt: skip
    base = outline(config, usual.params)
    return replace(base, total_params=usual.params, active_params=usual.params,
                   embedding_params=0.0, why_approximate=staged.USUAL_WHY)  # fmt: skip


def _like(config: Config) -> ModelShape:
    """A family that is not known here: like a ViT without words, else like Llama.

    Raises
    ------
    ImportFileError : for a file that states too little for either
    """
    kind = config.model_type
    seen = None if config.stated("vocab") else other.without_words(config)
    if seen is not None:
        return seen
    _refuse_unreadable(config)
    why = (f"the architecture {kind or 'of this file'!r} is not known here: it is read like Llama "
           "and can be far off; give its number of parameters instead if you know it")  # fmt: skip
    latent = config.has("kv_lora_rank") and config.has("qk_nope_head_dim")
    like = replace(SPECS["llama"], attention="mla") if latent else SPECS["llama"]
    return decoder.shape(config, like, exact=False, why=why)


def _refuse_unreadable(config: Config) -> None:
    """A family that is not known here, and that states too little to be read like another."""
    for name in ("hidden", "layers", "heads", "vocab") if config.model_type else ():
        if config.stated(name) is None:
            raise _error(
                f"is of the architecture {config.model_type!r}, which is not known here, and "
                f"states no {ALIASES[name][0]}", config.name,
                "give its number of parameters instead",
            )  # fmt: skip


def shape_json(shape: ModelShape) -> dict[str, Any]:
    """The shape as the shell prints it."""
    return {
        "total_params": round(shape.total_params),
        "active_params": round(shape.active_params),
        "embedding_params": round(shape.embedding_params),
        "exact": shape.exact,
        "why_approximate": shape.why_approximate,
        "note": shape.note,
        "kv_bytes_per_token_16bit": kv_cache_bytes_per_token(shape),
        "shape": asdict(shape),
    }
