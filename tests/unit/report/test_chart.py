from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.report.chart import Chart, Line, draw
from windage.report.curves import Curves, smooth
from windage.report.heatmap import Heatmap, draw_heatmap
from windage.report.scale import Scale, fit, ticks


def paths(svg):
    return re.findall(r'class="s1" d="(M[^"]*)"', svg)


def test_a_line_goes_from_corner_to_corner():
    svg = draw(Chart(lines=(Line(name="y", x=[0, 10], y=[0, 1]),), zero=True))
    start, end = (tuple(map(float, point.split(","))) for point in paths(svg)[0][1:].split("L"))
    assert start[0] < end[0]
    assert start[1] > end[1]  # pixels grow downwards


def test_gaps_break_the_line():
    svg = draw(Chart(lines=(Line(name="y", x=[0, 1, 2, 3, 4], y=[1, 2, None, math.nan, 3]),)))
    assert len(paths(svg)) == 2
    assert "nan" not in svg.replace("&quot;", "")


def test_points_out_of_an_interval_carry_error_bars():
    svg = draw(Chart(lines=(Line(name="y", x=[1], y=[0.5], low=[0.4], high=[0.6], style="points"),)))
    assert svg.count("<circle") == 1
    assert 'class="s1 thin"' in svg


@given(st.lists(st.floats(-1e6, 1e6) | st.none() | st.just(math.inf), max_size=5), st.booleans())
def test_a_range_holds_every_finite_value(values, zero):
    low, high = fit(values, zero=zero)
    assert low < high
    assert all(low <= value <= high for value in values if value is not None and math.isfinite(value))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low, width):
    marks = ticks(low, low + width)
    assert 1 <= len(marks) <= 12
    assert all(low - width * 1e-6 <= mark <= low + width * (1 + 1e-6) for mark in marks)


def test_scale_turns_around():
    assert Scale(0, 1, 100, 0)(0.25) == 75


def lines(count):
    return [
        {"step": step, "a": float(step), "h": {"edges": [0, 1, 2], "counts": [1.0, float(step)]}}
        for step in range(count)
    ]


def test_long_runs_are_thinned_without_losing_peaks():
    curves = Curves(lines(1000), most=100)
    assert len(curves.x) == 100
    assert curves.x[-1] == 1000.0
    assert curves.mean("a")[0] == pytest.approx(4.5)
    assert curves.largest("a")[0] == 9.0


def test_histograms_that_share_a_column_are_summed():
    places, edges, counts = Curves(lines(4)).histograms("h", columns=2)
    assert (places, edges) == ([2.0, 4.0], [0.0, 1.0, 2.0])
    assert counts == [[2.0, 1.0], [2.0, 5.0]]
    assert Curves(lines(4)).histograms("none") == ([], [], [])


def test_missing_columns():
    curves = Curves(lines(3))
    assert "a" in curves
    assert "b" not in curves
    assert curves.mean("b") == [None, None, None]
    assert curves.last("b") is None


def test_smoothing_of_one_is_no_smoothing():
    assert smooth([1.0, None, 3.0], span=1) == [1.0, None, 3.0]


def test_a_heat_map_colours_by_share():
    svg = draw_heatmap(Heatmap(x=[1, 2], bins=["0", "1"], shares=[[1.0, 0.0], [0.5, 0.5]]))
    assert svg.count("<rect") == 3
    assert 'fill-opacity="1.00"' in svg


def test_histograms_that_grow_are_padded():
    grown = [
        {"step": 0, "h": {"edges": [0, 1], "counts": [4]}},
        {"step": 1, "h": {"edges": [0, 1, 2], "counts": [1, 2]}},
    ]
    places, edges, counts = Curves(grown).histograms("h")
    assert (places, edges, counts) == ([1.0, 2.0], [0.0, 1.0, 2.0], [[4.0, 0.0], [1.0, 2.0]])
    assert Curves(grown).histograms("h", columns=1)[2] == [[5.0, 2.0]]
