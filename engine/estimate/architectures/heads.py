"""A network without the head of a language model, or with another one.

A file's `architectures` names the class that was saved. A trunk (`MistralModel`, as embedding
models are) has no head, a judge of answers or a classifier has a small one. Knows no formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.estimate.architectures.outline import NESTED
from engine.estimate.architectures.reading import Config
from engine.estimate.architectures.specs import SPECS
from engine.estimate.architectures.terms import SAME, Formula, formula_of, primaries
from engine.estimate.shape import ModelShape

WRITES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForVision2Seq")
# Heads in the trunk's place, as the library builds them: outputs (0: a label each), and a bias.
SMALL: dict[str, tuple[int | None, bool]] = {
    "Model": (None, False),
    "ForSequenceClassification": (0, False),
    "ForTokenClassification": (0, True),
    "ForQuestionAnswering": (2, True),
}
LABELS = 2  # where a file lists none
DECODERS = ("decoder", "hybrid")
# What the library called a class before.
FORMER = {"t5withlmheadmodel": "t5forconditionalgeneration"}
# Families whose head is more than one matrix: what is left without it has no rule here.
DEEP_HEADS = ("modernbert-decoder", "moshi", "pi0")
# Families whose files name another family's class.
BORROWED = {"kimi_k2": "deepseek_v3"}


def as_named(config: Config, shape: ModelShape) -> ModelShape:
    """The shape with the head that the file's class has; of a class not known it is said so.

    shape : as counted with the head of a language model, where the class has no formula of its own
    """
    if config.flag("add_cross_attention") and shape.kind in DECODERS:
        why = "attention to another network (add_cross_attention) is not counted"
        return replace(shape, exact=False, why_approximate=shape.why_approximate or why)
    named = _named(config)
    counted = formula_of(config.raw, config.model_type)
    known = {counted.name if counted else "", *(_usual(config) or ())}
    ending = next((e for e in SMALL if named.endswith(e)), "")
    table = 0 if shape.tied_embeddings else shape.vocab * shape.hidden
    if not named or FORMER.get(named.lower(), named.lower()) in map(str.lower, known):
        if ending and shape.kind in DECODERS:  # its formula has no head; the widths' reader has
            return replace(shape, embedding_params=shape.embedding_params - table)
        return shape
    if named.endswith(WRITES) and not counted and _of_family(named, config.model_type):
        return shape
    plain = config.model_type not in DEEP_HEADS and not any(
        isinstance(config.raw.get(key), Mapping) for key in NESTED
    )
    if not ending or named.endswith(WRITES) or shape.kind not in DECODERS or not plain:
        return _unsure(config, shape, named)
    outputs, bias = SMALL[ending]
    if outputs == 0:
        labels = config.raw.get("id2label")
        stated = config.whole("num_labels", LABELS)
        outputs = len(labels) if isinstance(labels, Mapping) and labels else stated
    small = 0 if outputs is None else outputs * (shape.hidden + int(bias))
    less = table + _biases(config, counted, shape) - small
    return replace(
        shape, total_params=shape.total_params - less, active_params=shape.active_params - less,
        embedding_params=shape.embedding_params - table,
    )  # fmt: skip


def _of_family(named: str, kind: str) -> bool:
    """Whether a class is by its name the family's own: `GPT2LMHeadModel` of `gpt2`."""
    stem = next(named.removesuffix(end) for end in WRITES if named.endswith(end))
    names = (stem, BORROWED.get(kind, kind).removesuffix("_text"))
    mine, family = ("".join(filter(str.isalnum, n)).lower() for n in names)
    return not kind or mine.startswith(family) or family.startswith(mine)


def _biases(config: Config, counted: Formula | None, shape: ModelShape) -> int:
    """Of the language model's head, where the class has them: one for each word."""
    if counted is None:
        spec = SPECS.get(config.model_type)
        return shape.vocab if spec and spec.head_bias else 0
    roles = counted.roles.values()
    return shape.vocab if any("vocab_size" in role.split(" + ") for role in roles) else 0


def _named(config: Config) -> str:
    """The class that the file names first."""
    listed = config.raw.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else ""
    return first if isinstance(first, str) else ""


def _usual(config: Config) -> tuple[str, ...]:
    """The name of the family's usual class."""
    usual = primaries().get(SAME.get(config.model_type, config.model_type))
    return (usual.name,) if usual else ()


def _unsure(config: Config, shape: ModelShape, named: str) -> ModelShape:
    """Counted as the usual class of the family, which the file's may not be."""
    like = next(iter(_usual(config)), f"{config.model_type} with a language model's head")
    why = f"its class {named[:60]} is not known here: it is counted like {like}"
    return replace(shape, exact=False, why_approximate=shape.why_approximate or why)
