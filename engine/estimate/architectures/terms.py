"""Parameter counts as formulas over a configuration's own keys, one class of `transformers` each.

The tables of `formulas/` hold them: found by finite differences on the meta device with
`transformers` 5.24.0 and verified on configurations that took no part in the finding. Those of
`defaults/` hold what the library takes for a key that a file leaves out. Knows no shapes, only
counts.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from engine.errors import ImportFileError
from engine.estimate.architectures.reading import ALIASES, MOST_STAGES, Config, is_size

FOLDER = Path(__file__).resolve().parent
# Sizes that are never filled in for a model's own level: a file without them is incomplete.
NEEDED = ("hidden", "layers", "heads", "vocab", "ffn")
# What the library computes from other keys when a file says nothing.
RULES = ("hidden/heads", "heads", "4*hidden", "2*hidden", "hidden", "layers")
# What the library computes for a key that is null, whatever its default where it is left out.
NULLED = {"num_key_value_heads": "heads", "num_kv_heads": "heads", "head_dim": "hidden/heads"}
# Names that owners give to an architecture which the library knows under another.
SAME = {
    "mistral-nemo": "mistral", "yi": "llama", "aquila": "llama",
    "internlm": "llama", "xverse": "llama", "tele-flm": "llama", "decilm": "llama",
    "gpt-sw3": "gpt2", "internlm3": "llama", "iquestcoder": "llama", "sarvam_moe": "glm4_moe",
}  # fmt: skip
# Families whose usual pattern `layer_kinds` knows.
PERIODIC = ("gemma", "qwen3_next", "qwen3_5", "shieldgemma2", "t5gemma")
# Wholes whose head is tied where either they or their text part say so; and by the part's default.
TIED_BY_EITHER = ("glm4v", "llava", "llava_next_video", "llava_onevision",
                  "minimax_m3_vl", "qwen2_vl", "qwen2_5_vl")  # fmt: skip
TIED_BY_PART = ("shieldgemma2",)
# Families that take hidden / heads as a head's width whatever head_dim a file states.
OWN_WIDTH = ("fuyu", "glm46v", "glm4v", "lfm3_vl", "mllama", "moonshine", "persimmon",
             "qwen2_vl", "qwen2_5_vl", "roformer", "stablelm", "wavlm")  # fmt: skip
CROSS = tuple(range(3, 40, 5))  # layers of Llama 3.2 Vision that look at the picture
Monomial = tuple[Fraction, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, slots=True)
class Formula:
    """One class: sums of products of keys by role, and keys that must have a given value.

    A key is a path (`vision_config.depth`); `depths.2` is the third of a list.

    roles : always, routed (experts of which a token passes a few), text, text_routed, vision
    guards : what a key must be; of `depths#` how many stages, of `width%8` what a division leaves
    """

    name: str
    model_type: str
    primary: bool
    roles: Mapping[str, str]
    guards: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Count:
    """Parameters by role, and what was left out of them in words."""

    roles: Mapping[str, int]
    missing: str = ""

    @property
    def total(self) -> int:
        """All parameters, each once."""
        return sum(self.roles.values())

    @property
    def routed(self) -> int:
        """Those of routed experts."""
        return sum(n for role, n in self.roles.items() if role.endswith("routed"))


@lru_cache(maxsize=1)
def formulas() -> dict[str, Formula]:
    """Every class of the table by its name."""
    found: dict[str, dict[str, Any]] = {}
    for row in _rows("formulas"):
        one = found.setdefault(
            row["class"], {"name": row["class"], "model_type": row["model_type"],
                           "primary": row["primary"] == "yes", "roles": {}, "guards": {},
                           "parts": {}},
        )  # fmt: skip
        if row["role"] in ("guard", "parts"):
            named = dict(x.split("=", 1) for x in row["formula"].split("; "))
            one["guards" if row["role"] == "guard" else "parts"] = named
        else:
            one["roles"][row["role"]] = row["formula"]
    return {name: Formula(**one) for name, one in found.items()}


@lru_cache(maxsize=1)
def primaries() -> dict[str, Formula]:
    """The class that a model type means when a file names no class."""
    return {f.model_type: f for f in formulas().values() if f.primary}


@lru_cache(maxsize=1)
def defaults() -> dict[str, dict[str, str]]:
    """What the library takes for a key, by model type."""
    found: dict[str, dict[str, str]] = {}
    for row in _rows("defaults"):
        found.setdefault(row["model_type"], {})[row["key"]] = row["default"]
    return found


def _rows(table: str) -> Iterator[dict[str, str]]:
    """Rows of a table, which lies in several files of moderate length."""
    for path in sorted((FOLDER / table).glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Monomial, ...]:
    """`2*a*b^2/c - 3*d` as coefficients and powers."""
    terms: list[Monomial] = []
    for word in text.replace(" - ", " + -").split(" + "):
        coefficient, powers = Fraction(1), []
        for factor in word.split("*"):
            sign, body = (-1, factor[1:]) if factor.startswith("-") else (1, factor)
            coefficient *= sign
            name, _, power = body.partition("^")
            if name.replace("/", "").isdigit():
                coefficient *= Fraction(name)
            else:
                powers.append((name, int(power or 1)))
        terms.append((coefficient, tuple(powers)))
    return tuple(terms)


def formula_of(raw: Mapping[str, Any], kind: str) -> Formula | None:
    """The class that the file names, or the usual one of its model type."""
    usual = primaries().get(SAME.get(kind, kind))
    named = raw.get("architectures")
    if isinstance(named, list) and named and isinstance(named[0], str):
        found = formulas().get(named[0])
        if found is not None and (not kind or found.model_type in (kind, SAME.get(kind))):
            return found
        # Owners also write the text part's type on the level of a model with an image tower.
        if (
            found is not None and any(role.startswith("text") for role in found.roles)
            and isinstance(raw.get("text_config"), Mapping)
            and not (usual and any(role.startswith("text") for role in usual.roles))
        ):  # fmt: skip
            return found
    return usual


def count(formula: Formula, config: Config) -> Count:
    """Parameters of a configuration by the formula of its class.

    Raises
    ------
    ImportFileError : for sizes that the file does not state
    """
    reader = Reader(formula, config)
    roles = {}
    missing = ""
    for role, written in formula.roles.items():
        part = {"text": "text_config", "text_routed": "text_config", "vision": "vision_config"}
        key = f"{part.get(role, '')}.model_type"
        usual = formula.parts.get(key, "")
        stated = reader.nested_type(part.get(role, ""))
        if stated == formula.model_type:
            stated = usual  # a part that bears the whole's name
        if usual and stated and SAME.get(stated, stated) != usual:
            if role == "text_routed":
                continue
            other = primaries().get(SAME.get(stated, stated))
            inner = config.raw.get(part[role])
            if other is None or not isinstance(inner, Mapping):
                missing = f"its {part[role]} {stated!r} is not known here"
                continue
            tied = tied_by_part(config.raw, config.model_type)
            if tied is None:
                tied = config.raw.get("tie_word_embeddings")
            usual_tie = defaults().get(formula.model_type, {}).get("tie_word_embeddings")
            if tied is None and usual_tie is not None:
                tied = usual_tie == "1"  # the whole's own, whatever the part says
            again = {**inner, **({} if tied is None else {"tie_word_embeddings": tied})}
            nested = count(other, Config(again, config.name, nested=True))
            roles[role] = nested.total - nested.routed
            if nested.routed:
                roles[role + "_routed"] = nested.routed
            missing = missing or nested.missing
        else:
            roles[role] = reader.total(_parsed(written))
    if reader.unlisted:
        missing = missing or f"it does not list its {reader.unlisted}, a usual pattern is taken"
    if reader.uneven:
        missing = missing or f"its {reader.uneven} does not divide what is shared among them"
    if reader.odd_width:
        missing = missing or f"its {reader.odd_width} is not counted"
    missing = missing or reader.unheld()
    if reader.broken:
        missing = missing or "its layers divide its widths unevenly, which is not counted"
    return Count(roles, missing)


def other_parts(formula: Formula, config: Config) -> bool:
    """Whether a part of the file is of another family than the formula holds for."""
    reader = Reader(formula, config)
    return any(
        key.endswith(".model_type") and reader.text(key) not in ("", value)
        for key, value in formula.guards.items()
    )


class Reader:
    """Values of a formula's variables in one configuration."""

    def __init__(self, formula: Formula, config: Config) -> None:
        self.formula = formula
        self.config = config
        self.defaults = defaults().get(formula.model_type, {})
        self.found: dict[str, int] = {}
        self.unlisted = ""  # a list of layers' kinds that the file would have to state
        self.uneven = ""  # a key that does not divide what is shared by it
        self.broken = False  # whether a part of a width, as a quarter, is no whole one
        self.odd_width = ""  # a stated width of the heads that the formula does not read

    def total(self, terms: tuple[Monomial, ...]) -> int:
        """The sum of the products."""
        result = Fraction(0)
        for coefficient, powers in terms:
            one = coefficient
            for key, power in powers:
                value = self.value(key)
                if value == 0:
                    if power < 0:
                        raise self.error(key, value)
                    one = Fraction(0)
                    break
                one *= Fraction(value) ** power
            if coefficient.denominator == 1 and one.denominator > 1:
                self.uneven = next(key for key, power in powers if power < 0)
            self.odd_width = self.odd_width or self._odd_width(powers)
            result += one
        self.broken = self.broken or result.denominator > 1
        return round(result)

    def _odd_width(self, powers: tuple[tuple[str, int], ...]) -> str:
        """A head_dim of the file's own where the formula takes hidden / heads; else nothing."""
        for key, power in powers:
            if power > 0 or not key.endswith("num_attention_heads"):
                continue
            if self.formula.model_type in OWN_WIDTH:
                continue
            prefix = key.removesuffix("num_attention_heads")
            width = self._stated(f"{prefix}head_dim")
            if not is_size(width):
                continue
            if width != self._sibling(prefix, "hidden") // max(self.value(key), 1):
                return f"{prefix}head_dim of {width}"
        return ""

    def value(self, key: str) -> int:
        """A variable: a key by its path, or one derived from keys."""
        if key not in self.found:
            self.found[key] = self._value(key)
        return self.found[key]

    def text(self, key: str) -> str:
        """A key's value as the table writes it, empty where neither file nor table states it."""
        name, _, part = key.partition("%")
        value = self._stated(name)
        if part:  # `width%4`, `width%heads`: what is left over when a layer divides a width
            by = int(part) if part.isdigit() else self._stated(part)
            return str(value % by) if is_size(value) and is_size(by) else ""
        return self.defaults.get(key, "") if value is None else _written(value)

    def unheld(self) -> str:
        """What the file says otherwise than the formula holds for, in words; empty for nothing."""
        for key, value in self.formula.guards.items():
            stated = self.text(key)
            if stated in ("", value):
                continue
            if "%" in key:
                told = f"{key.partition('%')[0]} is no multiple of {key.partition('%')[2]}"
            elif key.endswith("#"):
                told = f"{key[:-1]} has {stated[:60]} stages"
            else:
                told = f"{key} is {stated[:60]}"
            return f"{told}, which is not counted"
        return ""

    def nested_type(self, part: str) -> str:
        """The model type of a part, if the file states one."""
        inner = self.config.raw.get(part) if part else None
        kind = inner.get("model_type") if isinstance(inner, Mapping) else None
        return kind if isinstance(kind, str) else ""

    def _value(self, key: str) -> int:
        part, _, last = key.rpartition(".")
        prefix = f"{part}." if part else ""
        if ":" in last:
            return self._layers_of(prefix, last)
        if last == "grid":
            return self.value(f"{prefix}image_size") // max(self.value(f"{prefix}patch_size"), 1)
        if last == "factorized":
            return int(self.value(f"{prefix}embedding_size") != self.value(f"{prefix}hidden_size"))
        if last == "cross_layers":
            listed = self._stated(f"{prefix}cross_attention_layers")
            seeing = {str(i) for i in (listed if isinstance(listed, list) else CROSS)}
            depth = self.value(f"{prefix}num_hidden_layers")
            return sum(1 for i in seeing if i.isdigit() and len(i) < 9 and int(i) < depth)
        if last == "interleaved":
            listed = self._stated(f"{prefix}moe_layers")
            if isinstance(listed, list):
                depth = self.value(f"{prefix}num_hidden_layers")
                return sum(1 for i in listed if _whole(i) and i < depth)
            step = self._stated(f"{prefix}interleave_moe_layer_step")
            return self.value(f"{prefix}num_hidden_layers") // (step if is_size(step) else 1)
        if last == "reprojected":
            width = self.value(f"{prefix}word_embed_proj_dim")
            return int(width != self.value(f"{prefix}hidden_size"))
        if last == "is_gated_act" and self._stated(key) is None:
            kind = self._stated(f"{prefix}feed_forward_proj")
            if isinstance(kind, str):
                return int(kind.startswith("gated"))
        if last == "sparse_layers":
            listed = self._stated(f"{prefix}mlp_only_layers")
            only = listed if isinstance(listed, list) else []
            step = max(self.value(f"{prefix}decoder_sparse_step"), 1)
            layers = range(self.value(f"{prefix}num_hidden_layers"))
            return sum(1 for i in layers if i not in only and (i + 1) % step == 0)
        if key == "tie_word_embeddings":
            told = tied_by_part(self.config.raw, self.config.model_type)
            if told is not None:
                return int(told)
        if key == "num_labels":
            labels = self.config.raw.get("id2label")
            if isinstance(labels, Mapping) and labels:
                return len(labels)
        stated = self._stated(key)
        if stated is None:
            return self._default(key)
        if isinstance(stated, bool):
            return int(stated)
        if isinstance(stated, list | tuple) and len(stated) in (1, 2) and stated[0] == stated[-1]:
            stated = stated[0]  # width and height
        if not isinstance(stated, int | float) or not abs(stated) < 1e9 or stated != int(stated):
            raise self.error(key, stated)
        return int(stated)

    def _stated(self, key: str) -> Any:
        at, last = self._level(key)
        if not isinstance(at, Mapping):
            return None
        if last.endswith("#"):  # `depths#`: how many stages it lists
            listed = at.get(last[:-1])
            return len(listed) if isinstance(listed, list | tuple) else listed and "no list of"
        if at.get(last) is not None:
            return at[last]
        if last.startswith(("encoder_", "decoder_")):
            return None  # two stacks of their own: neither stands in for the other
        for names in ALIASES.values():
            if last in names:
                return next((at[n] for n in names if at.get(n) is not None), None)
        return None

    def _default(self, key: str) -> int:
        rule = self.defaults.get(key, "")
        if self._null(key) and key.rpartition(".")[2] in NULLED:
            rule = NULLED[key.rpartition(".")[2]]
        prefix = key.rpartition(".")[0] + "." if "." in key else ""
        if rule in RULES:
            if rule == "layers":
                return self._sibling(prefix, "layers")
            hidden = self._sibling(prefix, "hidden")
            heads = self._sibling(prefix, "heads") if "heads" in rule else 1
            computed = (hidden // max(heads, 1), heads, 4 * hidden, 2 * hidden, hidden)
            return dict(zip(RULES, computed, strict=False))[rule]
        last = key.rpartition(".")[2]
        flat = prefix == "text_config." and "text_config" not in self.config.raw
        own = (not prefix or flat) and not self.config.nested
        if rule == "" or (own and any(last in ALIASES[n] for n in NEEDED)):
            raise ImportFileError(
                f"states no {key}", where=self.config.name,
                right="the complete config.json; a missing size is never guessed",
            )  # fmt: skip
        return int(rule)

    def _level(self, key: str) -> tuple[Any, str]:
        """The part of the file that holds a key, and the key's own name."""
        at: Any = self.config.raw
        *path, last = key.split(".")
        for step in path:
            if step == "text_config" and isinstance(at, Mapping) and step not in at:
                continue  # older files keep the text part's sizes on the top level
            at = at.get(step) if isinstance(at, Mapping) else None
        if isinstance(at, list | tuple):  # `depths.2`: the third stage's
            at = {str(i): value for i, value in enumerate(at[:MOST_STAGES])}
        return at, last

    def _null(self, key: str) -> bool:
        """Whether the file states the key as null, which differs from leaving it out."""
        at, last = self._level(key)
        return isinstance(at, Mapping) and last in at and at[last] is None

    def _sibling(self, prefix: str, name: str) -> int:
        """The part's hidden size or number of heads under the name that its family uses."""
        for alias in ALIASES[name]:
            if self._stated(prefix + alias) is not None or prefix + alias in self.defaults:
                return self.value(prefix + alias)
        raise ImportFileError(f"states no {prefix}{ALIASES[name][0]}", where=self.config.name,
                              right="the complete config.json")  # fmt: skip

    def _layers_of(self, prefix: str, last: str) -> int:
        """How many layers are of a kind, as listed or by the interval that the file states."""
        name, _, kind = last.partition(":")
        listed = self._stated(prefix + name)
        layers = next((self.value(prefix + k) for k in ALIASES["layers"][:4]
                       if self._stated(prefix + k) is not None), None)  # fmt: skip
        if isinstance(listed, list | tuple):
            return Counter(map(str, listed[:layers]))[kind]
        layers = self.value(f"{prefix}num_hidden_layers") if layers is None else layers
        if name == "mlp_layer_types":
            dense = self._stated(f"{prefix}first_k_dense_replace")
            self.unlisted = "" if _whole(dense) else prefix + name
            usual = self.defaults.get(f"{prefix}first_k_dense_replace", "1")
            first = dense if _whole(dense) else int(usual) if usual.isdigit() else 1
            first = min(max(first, 0), layers)
            return {"dense": first, "sparse": layers - first}.get(kind, 0)
        period = ("full_attention_interval", "sliding_window_pattern")
        if not any(is_size(self._stated(prefix + p)) for p in period) and not (
            self.formula.model_type.startswith(PERIODIC)
        ):
            self.unlisted = prefix + name
        return Counter(layer_kinds(self._stated, self.defaults, prefix, layers))[kind]

    def error(self, key: str, value: Any) -> ImportFileError:
        """The error for a value that can't be counted with."""
        return ImportFileError(f"{key} is {str(value)[:40]!r}", where=self.config.name,
                               right="a whole number")  # fmt: skip


def tied_by_part(raw: Mapping[str, Any], kind: str) -> bool | None:
    """Whether the text part ties the head of a whole, where the library asks it; else None."""
    part = raw.get("text_config")
    stated = part.get("tie_word_embeddings") if isinstance(part, Mapping) else None
    if kind in TIED_BY_PART:
        return raw.get("tie_word_embeddings") is True or stated is not False
    return True if kind in TIED_BY_EITHER and stated is True else None


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value[:99])) + "]"
    whole = isinstance(value, bool) or (isinstance(value, float) and value.is_integer())
    return str(int(value) if whole else value)


def layer_kinds(stated: Any, usual: Mapping[str, str], prefix: str, layers: int) -> list[str]:
    """Kinds of layers of a file that gives a period: every so many layers one sees everything."""
    every = stated(f"{prefix}full_attention_interval") or usual.get(
        f"{prefix}full_attention_interval"
    )
    if every is None and any(key.rpartition(".")[2].startswith("linear_num") for key in usual):
        every = 4  # Qwen's hybrids
    if every:
        step = max(int(every), 1)
        return [
            "full_attention" if (i + 1) % step == 0 else "linear_attention" for i in range(layers)
        ]
    step = stated(f"{prefix}sliding_window_pattern") or 6
    if not isinstance(step, int) or step < 1:
        step = 6
    return ["full_attention" if (i + 1) % step == 0 else "sliding_attention" for i in range(layers)]
