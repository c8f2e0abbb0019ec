"""The page: one HTML file that holds all it needs and may load nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import cache
from importlib import metadata, resources
from typing import Any

from metfa._base.lazy import needs_extra
from metfa._base.palettes import DEFAULT_PALETTE, PALETTES
from metfa.report._content import Content
from metfa.report._deciding import alphas_with
from metfa.results.terms import Terms

__all__ = ["page_of"]

HERE = resources.files("metfa.report")
NAMES = {
    None: "none: each side of each feature at alpha",
    "bonferroni": "Bonferroni: any false mark at all",
    "holm": "Holm: any false mark at all, a few more marks",
    "bh": "BH: share of false marks (positive dependence)",
    "by": "BY: share of false marks (any dependence)",
    "e-bh": "e-BH: share of false marks (any dependence, whenever sampling stops)",
    "closed-e-bh": "closed e-BH: as e-BH, no fewer marks; e-BH decides if these samples chose the threshold",
}
CONTROLS = [
    ("correction", "Correction"),
    ("correction", "Correction of single features"),
    ("correction-of-regions", "Correction of regions"),
]


def page_of(
    contents: Sequence[Content], title: str, single: Terms, regions: Terms | None, notebook: dict[str, Any] | None
) -> str:
    """The whole page, which starts with the alpha and the correction of these terms.

    `regions`: the terms of regions where these stand beside single features, and have a control of their own.
    `notebook`: what the page says of its samples where it is in a cell of a notebook, else None. Texts of others are
    escaped, and the page runs only the script and the style that come with metfa.
    """
    with needs_extra("a report", "report"):
        from markupsafe import Markup

        template = _template()
    style, script = ((HERE / "assets" / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    style = _colours() + style
    data = {
        "alphas": alphas_with(single.alpha),
        "alpha": single.alpha,
        "correction": single.correction or "none",
        "correctionOfRegions": None if regions is None else regions.correction or "none",
        **({} if notebook is None else {"notebook": notebook}),
        **_with_pictures([content.data for content in contents]),
    }
    return template.render(
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        title=title,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        data=Markup(_json(data)),  # noqa: S704 - no < in it
        contents=contents,
        in_notebook=notebook is not None,
        shown={_unit_of(content) for content in contents},
        has_maps=any(content.kind in ("maps", "series", "volume") for content in contents),
        has_outlines=any(content.kind == "maps" and content.data["compared"] for content in contents),
        has_pictures=any("picture" in content.data for content in contents),
        controls=CONTROLS[:1] if regions is None else CONTROLS[1:],
        corrections=[(correction or "none", NAMES[correction]) for correction in NAMES],
        version=metadata.version("metfa"),
        made=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )


@cache
def _template() -> Any:
    """The page without its content; to compile it takes longer than to fill it in."""
    from jinja2 import Environment, StrictUndefined

    text = (HERE / "page.html.jinja").read_text(encoding="utf-8")
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(text)


def _unit_of(content: Content) -> str:
    """What a sample is: of a "pair" of explanations, a "population", "answers", noisy "copies", or random "draws"."""
    if content.data["compared"]:
        return "pair"
    if content.kind == "answer":
        return "answers"
    if content.data["sampleNoun"] != "sample":
        return "population"
    return "copies" if content.data["noisy"] else "draws"


def _with_pictures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Data of results, and each of their pictures once; a result keeps its picture's place."""
    pictures: dict[str, int] = {}

    def placed(data: dict[str, Any]) -> dict[str, Any]:
        held = {"picture": pictures.setdefault(data["picture"], len(pictures))} if "picture" in data else {}
        compared = {"compared": placed(data["compared"])} if data.get("compared") else {}
        return data | held | compared

    shown = [placed(data) for data in results]
    return {"pictures": list(pictures), "results": shown}


def _colours() -> str:
    """The colours of marks as variables of the style sheet, such as --important."""
    colours = vars(PALETTES[DEFAULT_PALETTE]).items()
    return ":root{" + "".join(f"--{mark.replace('_', '-')}:{colour};" for mark, colour in colours) + "}\n"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _json(data: dict[str, Any]) -> str:
    """JSON that cannot end a script element: "<" can only stand inside of texts, and is written as an escape there."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
