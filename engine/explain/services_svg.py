"""A drawing of an architecture as SVG: boxes in layers, one below the other, in the app's colours.

It is narrow enough to be read on a phone and needs no other font or file. Colours stand for the
same as everywhere: GPU, CPU; what stores has a plain frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from engine.explain.services_drawing import Arrow, Box, Drawing, Look

WIDTH = 440.0
MARGIN = 26.0  # right of the boxes, for arrows that pass layers by
BETWEEN = 26.0
DOWN = 44.0
PAD = 10.0
TITLE_PX, LINE_PX = 14.0, 12.5
# Width of a letter over its size, of the widest of the usual sans-serif fonts.
LETTER = 0.6
STACK = 4.0


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme, as in the app's configuration."""

    text: str
    muted: str
    frame: str
    gpu: str
    cpu: str
    fill: str
    ground: str


LIGHT = Palette("#10161f", "#5c6470", "#8a94a3", "#1b3f87", "#b8480f", "#f3f5f9", "#ffffff")
DARK = Palette("#e6eaf0", "#aeb6c2", "#7d8796", "#3f7df5", "#ea7a45", "#1d232d", "#12161d")


@dataclass(frozen=True, slots=True)
class _Placed:
    x: float
    y: float
    width: float
    height: float
    layer: int

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def svg(drawing: Drawing, *, dark: bool = False) -> str:
    """The drawing as a picture of its own, in the colours of the theme."""
    p = DARK if dark else LIGHT
    places, height = _layout(drawing)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + MARGIN:g} {height:g}" '
        f'width="{WIDTH + MARGIN:g}" height="{height:g}" role="img" '
        'font-family="Noto Sans, Segoe UI, Helvetica, Arial, sans-serif">',
        f"<title>{escape(drawing.title)}</title>",
        f'<rect width="100%" height="100%" fill="{p.ground}"/>',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{p.muted}"/>'
        "</marker></defs>",
    ]
    ways = {(a.start, a.end) for a in drawing.arrows}
    parts += [_arrow(a, places, p, twin=(a.end, a.start) in ways) for a in drawing.arrows]
    parts += [_box(b, places[b.id], p) for layer in drawing.layers for b in layer]
    return "".join([*parts, "</svg>"])


def _layout(drawing: Drawing) -> tuple[dict[str, _Placed], float]:
    """Where each box stands, and the height of the whole."""
    places: dict[str, _Placed] = {}
    y = PAD
    for number, layer in enumerate(drawing.layers):
        n = len(layer)
        width = min((WIDTH - (n - 1) * BETWEEN - 2 * STACK) / n, 260.0)
        start = (WIDTH - n * width - (n - 1) * BETWEEN) / 2
        tall = max(_height(b, width) for b in layer)
        for i, b in enumerate(layer):
            places[b.id] = _Placed(start + i * (width + BETWEEN), y, width, tall, number)
        y += tall + DOWN
    return places, y - DOWN + PAD + STACK


def _height(box: Box, width: float) -> float:
    title = len(_wrapped(box.title, width, TITLE_PX))
    lines = sum(len(_wrapped(line, width, LINE_PX)) for line in box.lines)
    return title * 18 + lines * 17 + 18


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """The words on lines that fit the box."""
    most = max(int((width - 2 * PAD) / (LETTER * size)), 6)
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _colour(look: Look, p: Palette) -> str:
    return {"gpu": p.gpu, "cpu": p.cpu}.get(look, p.frame)


def _box(b: Box, at: _Placed, p: Palette) -> str:
    edge = _colour(b.look, p)
    dash = ' stroke-dasharray="5 4"' if b.look == "outside" else ""
    frame = f'fill="{p.fill}" stroke="{edge}" stroke-width="2" rx="6"{dash}'
    size = f'width="{at.width:g}" height="{at.height:g}"'
    # More machines than one stand behind each other.
    behind = "".join(
        f'<rect x="{at.x + o:g}" y="{at.y + o:g}" {size} {frame}/>'
        for o in ((2 * STACK, STACK) if b.machines > 1 else ())
    )
    parts = [behind, f'<rect x="{at.x:g}" y="{at.y:g}" {size} {frame}/>']
    y = at.y + 22
    for line in _wrapped(b.title, at.width, TITLE_PX):
        parts.append(_text(line, at.middle, y, TITLE_PX, p.text, weight="700"))
        y += 18
    for text in b.lines:
        for line in _wrapped(text, at.width, LINE_PX):
            parts.append(_text(line, at.middle, y, LINE_PX, p.text))
            y += 17
    return "".join(parts)


def _text(
    text: str, x: float, y: float, size: float, colour: str, *, weight: str = "400",
    anchor: str = "middle",
) -> str:  # fmt: skip
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _arrow(a: Arrow, places: dict[str, _Placed], p: Palette, *, twin: bool) -> str:
    """An arrow with its word; `twin`: another goes the other way between the same boxes."""
    one, two = places[a.start], places[a.end]
    label = ""
    if one.layer == two.layer:
        y = one.y + one.height / 2
        right = two.x > one.x
        x1, x2 = (one.x + one.width, two.x) if right else (one.x, two.x + two.width)
        path = f"M{x1:g} {y:g}L{x2:g} {y:g}"
    elif two.layer - one.layer > 1:
        x = WIDTH + MARGIN / 2
        y1, y2 = one.y + one.height / 2, two.y + two.height / 2
        path = f"M{one.x + one.width:g} {y1:g}H{x:g}V{y2:g}H{two.x + two.width:g}"
        if a.label:
            label = _text(a.label, x - 5, (y1 + y2) / 2, LINE_PX, p.muted, anchor="end")
    else:
        up = two.layer < one.layer
        shift = 0.25 * min(one.width, two.width) if up else 0.0
        x1, x2 = one.middle + shift, two.middle + shift
        y1 = one.y if up else one.y + one.height
        y2 = two.y + two.height if up else two.y
        path = f"M{x1:g} {y1:g}L{x2:g} {y2:g}"
        if a.label:
            # A word stands on the outer side of its arrow, so that arrows beside it stay free.
            left = x2 < x1 - 1 or (not up and abs(x2 - x1) <= 1 and twin)
            # Beside a slanting arrow it stands as far off as the arrow slants within its height.
            off = 7 + LINE_PX / 2 * abs(x2 - x1) / max(abs(y2 - y1), 1.0)
            x = (x1 + x2) / 2 + (-off if left else off)
            anchor = "end" if left else "start"
            label = _text(a.label, x, (y1 + y2) / 2 + 4, LINE_PX, p.muted, anchor=anchor)
    dash = ' stroke-dasharray="5 4"' if a.dashed else ""
    return (
        f'<path d="{path}" fill="none" stroke="{p.muted}" stroke-width="1.6"{dash} '
        f'marker-end="url(#tip)"/>{label}'
    )
