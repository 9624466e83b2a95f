"""What a plan page asks beyond the job: the base of each page's terms.

The workload says what must be done; terms say under which conditions it is costed or planned. Each
page has one frozen model of its own, all of them together are the `Settings` of a session. Every
term has a default, and a short name under which it travels in the link. To add a page's terms,
subclass `Terms`, make its fields with `term`, and give it a place in `Settings`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from engine.errors import InputError
from engine.workload.workload import SMALLEST, said

Number = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


def term(default: Any, label: str, short: str, *, unit: str = "", help: str = "", **b: Any) -> Any:
    """A field with its title, its unit and its short name in the link."""
    extra: dict[str, Any] = {"unit": unit, "short": short}
    return Field(default, title=label, description=help or label, json_schema_extra=extra, **b)


class Terms(BaseModel):
    """Base of the terms of one page: frozen, comparable, hashable."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    @field_validator("*")
    @classmethod
    def _no_speck(cls, value: Any) -> Any:
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and 0 < number < SMALLEST:
                raise ValueError(f"{number:g} is too small to be meant; at least {SMALLEST:f}")
        return value

    @classmethod
    def title(cls, name: str) -> str:
        """Title of a term."""
        return str(cls.model_fields[name].title)

    @classmethod
    def unit(cls, name: str) -> str:
        """Unit of a term, empty for counts and choices."""
        return _extra(cls, name, "unit")

    @classmethod
    def short(cls, name: str) -> str:
        """Short name of a term, for the link."""
        return _extra(cls, name, "short")


T = TypeVar("T", bound=Terms)


def parse_terms(model: type[T], values: dict[str, Any]) -> T:
    """Terms from plain values.

    Raises
    ------
    InputError : the first fault, with the term's name, what was wrong and what would be right
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explained(model, error) from None


def _explained(model: type[Terms], error: ValidationError) -> InputError:
    first = error.errors()[0]
    where = str(first["loc"][0]) if first["loc"] else ""
    message = said(first)
    if not where and ": " in message:
        where, message = message.split(": ", 1)
        return InputError(message, where=where)
    if where not in model.model_fields:
        return InputError("there is no such term", where=where)
    unit = model.unit(where)
    return InputError(
        f"{str(first.get('input'))[:60]!r} can't be used for “{model.title(where)}”",
        where=where,
        right=message + (f"; in {unit}" if unit else ""),
    )


def _extra(model: type[Terms], name: str, key: str) -> str:
    extra = model.model_fields[name].json_schema_extra
    return str(extra[key]) if isinstance(extra, dict) else ""
