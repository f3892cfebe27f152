"""A log of one item is spoken of in the singular, by every command."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize(
    "command",
    [
        ("analyze", "--truth", "truth"),
        ("analyze", "--abstentions", "leave-out"),
        ("replay", "--truth", "truth"),
        ("fit", "--out", "rule.json"),
        ("audit", "--out", "label-me.csv"),
    ],
)
def test_one_item_is_no_items(command, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("item,a,b,c,truth\n1,x,y,,x\n")
    name, *options = command
    done = cli(name, "log.csv", "--stages", "a,b,c", "--costs", "0.1,0.2,0.4", *options)
    said = done.out + done.err
    assert "Traceback" not in said
    assert not re.search(r"(?<![\d.,])1 (items|rows|labels|rounds)\b", said), said
