"""Charts drawn: specifications to SVG for a page, and to files for papers and other tools, by vl-convert."""

# vl-convert draws without network. Its SVG is made smaller here and freed of what a page must not have: references to
# elsewhere, and ids that two charts on a page would share.

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgauge.base.errors import UsageError, needing
from lmgauge.base.files import digest, making_parents, writing
from lmgauge.report.blocks import ChartData, named
from lmgauge.report.charts import FONT, specification

if TYPE_CHECKING:
    from os import PathLike

_VERSION = "5.20"  # of Vega-Lite
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_PNG_SCALE = 2.0
_NUMBER = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?|-?\d+(?:\.\d+)?e-\d+")
_MEASURED = ("transform", "d", "x", "y", "x1", "y1", "x2", "y2", "width", "height", "viewBox", "stroke-width")
_IDLE = {"opacity": "1", "pointer-events": "none", "transform": "translate(0,0)", "font-family": FONT}
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_MARKS = ("point", "bar")
_REFERRING = ("clip-path", "mask", "fill", "stroke")


def svg(spec: Mapping[str, Any]) -> str:
    """Return a specification drawn as an SVG element for a page: as wide as there is room, and readable aloud."""
    # It has no `style`, no reference but to anchors of the page, no id that another chart has, and the class `chart`. A
    # chart with links is a group of links, another one an image; its label is the specification's description.
    root = _drawn(spec)
    linked = any(element.tag == "a" for element in root.iter())
    _show_when_pointed_at(root)
    label = str(spec.get("description", ""))
    box = root.get("viewBox", "")
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": "chart",
        "viewBox": box,
        "width": "100%",
        "font-family": FONT,
        "role": "group" if linked else "img",
        "aria-label": label,
    }
    return ET.tostring(root, encoding="unicode")


def write_charts(
    charts: Iterable[ChartData], folder: str | PathLike[str], endings: Sequence[str] = (".svg", ".pdf", ".png")
) -> list[Path]:
    """Write a file for each chart and ending: `position.svg`, `position.pdf`, `position.png`, ..."""
    return [write_chart(chart, Path(folder) / f"{name}{end}") for name, chart in named(charts) for end in endings]


def write_chart(chart: ChartData, path: str | PathLike[str]) -> Path:
    """Write a chart in the format that the path ends with: a drawing, or its Vega-Lite specification with its data."""
    path = Path(path)
    if (form := _FORMATS.get(path.suffix.lower())) is None:
        raise UsageError(f"{path}: charts are written as .svg, .pdf, .png or .json")
    content = form(specification(chart))
    with making_parents(path), writing(path) as file:
        file.write(content)
    return path


def figure_svg(spec: Mapping[str, Any]) -> bytes:
    """Return a chart as the content of an SVG file."""
    root = _drawn(spec)
    root.attrib = {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT} | {
        name: root.attrib[name] for name in ("width", "height", "viewBox")
    }
    root.attrib |= {"role": "img", "aria-label": str(spec.get("description", ""))}
    return ET.tostring(root, encoding="unicode").encode()


def _figure_pdf(spec: Mapping[str, Any]) -> bytes:
    with needing("vl-convert-python", extra="report"):
        import vl_convert
    return bytes(vl_convert.vegalite_to_pdf(dict(spec), vl_version=_VERSION))


def _figure_png(spec: Mapping[str, Any]) -> bytes:
    with needing("vl-convert-python", extra="report"):
        import vl_convert
    white = {**spec, "background": "white"}
    return bytes(vl_convert.vegalite_to_png(white, vl_version=_VERSION, scale=_PNG_SCALE))


def _specification(spec: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(spec, ensure_ascii=False, indent=1, allow_nan=False)}\n".encode()


_FORMATS = {".svg": figure_svg, ".pdf": _figure_pdf, ".png": _figure_png, ".json": _specification}


def _drawn(spec: Mapping[str, Any]) -> ET.Element:
    # SVG of a specification, freed of what a page must not have.
    with needing("vl-convert-python", extra="report"):
        import vl_convert
    text = vl_convert.vegalite_to_svg(dict(spec), vl_version=_VERSION)
    root = ET.fromstring(text)
    _clean(root)
    # vl-convert counts ids on from chart to chart; here they depend on the drawing only.
    olds = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    _set_ids(root, {old: f"{i}" for i, old in enumerate(olds)})
    prefix = f"c{digest(ET.tostring(root))[:10]}"
    _set_ids(root, {f"{i}": f"{prefix}-{i}" for i in range(len(olds))})
    return root


def _show_when_pointed_at(root: ET.Element) -> None:
    for parent in list(root.iter()):
        for mark in parent:
            if mark.get("aria-roledescription") not in _MARKS:
                continue
            ET.SubElement(mark, "title").text = mark.get("aria-label")
            if parent.tag == "a" and mark.get("aria-roledescription") == "point" and "fill" in mark.attrib:
                mark.attrib |= {"stroke": "transparent", "stroke-width": "14"}


def _set_ids(root: ET.Element, new: Mapping[str, str]) -> None:
    for element in root.iter():
        if "id" in element.attrib:
            element.set("id", new[element.attrib["id"]])
        for name in _REFERRING:
            if match := _REFERENCE.fullmatch(element.get(name, "")):
                element.set(name, f"url(#{new[match[1]]})")


def _clean(element: ET.Element) -> None:
    element.tag = element.tag.removeprefix(_SVG)
    href = element.attrib.pop(_HREF, None) or element.attrib.pop("href", None)
    element.attrib.pop("target", None)
    element.attrib.pop("style", None)
    element.attrib.pop("class", None)
    if href is not None and "#" in href:
        element.set("href", "#" + href.split("#", 1)[1])
    elif element.tag == "a":  # a mark that leads nowhere
        element.tag = "g"
    for name, idle in _IDLE.items():
        if element.get(name) == idle:
            del element.attrib[name]
    for name in _MEASURED:
        if name in element.attrib:
            element.set(name, _NUMBER.sub(_rounded, element.attrib[name]))
    children: list[ET.Element] = []
    for child in element:
        if not _is_empty(child):
            _clean(child)
            if child.tag != "g" or len(child):  # a group of nothing would have a role, and no name
                children += list(child) if child.tag == "g" and not child.attrib else [child]
    element[:] = children


def _is_empty(element: ET.Element) -> bool:
    if element.get("fill") == "transparent" and element.tag == f"{_SVG}rect":
        return True
    if element.get("class") not in ("background", "foreground"):
        return False
    return element.get("display") == "none" or not {"fill", "stroke"} & element.attrib.keys()


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
