"""Wall clock and efficiency against width as a picture."""

from __future__ import annotations

import importlib
import sys
import xml.etree.ElementTree as ET
from typing import Any

from widelane.errors import InputError
from widelane.models.verdict import PhaseVerdict
from widelane.reports.clean import clean_line

_SVG = "http://www.w3.org/2000/svg"
_LEFT_OUT = frozenset({f"{{{_SVG}}}script", "script"})


def width_chart(verdict: PhaseVerdict) -> str:
    """An SVG with a bar of wall clock and one of efficiency for each width. The same verdict gives the same text.

    Raises InputError for a phase without numbers, and where the library that draws isn't installed.
    """
    if not verdict.widths or not verdict.requested_width:
        raise InputError(f"{verdict.name} has no numbers to draw", hint="give gpu_hours or unit_minutes")
    try:
        pygal: Any = importlib.import_module("pygal")
        styles: Any = importlib.import_module("pygal.style")
    except ImportError as error:
        raise InputError("pygal is not installed", hint="install widelane[web]", code="missing_extra") from error
    finally:
        # pygal leaves a finder of the kind that Python gave up: each later import that fails would warn of it.
        sys.meta_path[:] = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]
    style = styles.Style(
        font_family="sans-serif", background="white", plot_background="white", colors=("#3b6ea5", "#d98032")
    )
    chart: Any = pygal.Bar(
        js=[], no_prefix=True, style=style, width=720, height=420, explicit_size=True, legend_at_bottom=True
    )
    chart.title = clean_line(verdict.name)
    chart.x_title = "GPUs"
    chart.x_labels = [str(row.width) for row in verdict.widths]
    chart.add("wall clock, hours", [round(row.wall_hours, 2) for row in verdict.widths])
    chart.add("efficiency, %", [round(row.efficiency * 100) for row in verdict.widths], secondary=True)
    return _still(chart.render(is_unicode=True))


def _still(svg: str) -> str:
    """The picture without scripts, and without comments, which hold the date."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in _LEFT_OUT:
                parent.remove(child)
    return ET.tostring(root, encoding="unicode") + "\n"
