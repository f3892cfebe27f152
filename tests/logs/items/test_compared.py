"""What is given per item shows itself: in a line, as a table, in a notebook."""

from __future__ import annotations

from typing import Any

import pytest

import stopwise as sw

SETTINGS: dict[str, Any] = sw.example_settings()


@pytest.fixture(scope="module")
def analysis():
    return sw.analyze(sw.example_log(), per_item=True, **SETTINGS)


def test_ways_to_stop_show_themselves(analysis):
    for found in (analysis.per_item, analysis.per_item_alone):
        assert len(repr(found)) < 100, "no dump of all that is in it"
        assert "1,797 items" in repr(found)
        ways = (found.per_item, *found.ways)
        table = found.to_frame()
        assert table["name"].to_list() == [way.name for way in ways]
        assert table["cost"].to_list() == [way.cost for way in ways]
        html = found._repr_html_()
        assert html.count("<tr>") == 1 + len(ways)
        assert all(f"<td>{way.name}</td>" in html for way in ways)


def test_an_analysis_per_item_says_what_it_is_worth(analysis):
    for shown in (str(analysis), analysis._repr_html_()):
        assert "Per item: " in shown
        assert "Per item, called alone: " in shown
    assert "Per item" not in str(sw.analyze(sw.example_log(), **SETTINGS))


@pytest.mark.parametrize("settings", [{}, {"calls": "alone"}], ids=["cascade", "alone"])
def test_a_fitted_rule_is_shown_in_a_line(settings):
    rule = sw.fit(sw.example_log(), **SETTINGS, **settings)
    assert "tree 0.008, linear 0.704, kernel 48.614; a mistake costs" in repr(rule)
    assert " at 0x" not in repr(rule)


def test_labels_for_a_rule_show_themselves():
    audit = sw.item_audit(sw.example_log(), **SETTINGS)
    assert str(audit).startswith("0 labels on items whose outputs differ")
    assert len(repr(audit)) < 100
    assert "To label next: " in audit._repr_html_()
