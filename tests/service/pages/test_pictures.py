"""The pictures of the tutorial are taken here too, as `make pictures` does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from make_service_pictures import LONGEST, PICTURES, SEEN, make_pictures

from stopwise.service.example import running
from stopwise.service.example.texts import read_texts


def shape_of(picture: Path) -> tuple[int, int]:
    """Width and height, as the head of a PNG file has them."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


@pytest.mark.slow
def test_the_pictures_of_the_tutorial_can_be_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, asked = read_texts()
    monkeypatch.setattr(running, "read_texts", lambda: (known, asked[:150]))
    asyncio.run(make_pictures(tmp_path))
    kept = {picture.name: picture for picture in PICTURES.glob("*.png")}
    assert kept.keys() == {f"{name}.png" for name in SEEN}
    for name, picture in kept.items():
        made = tmp_path / name
        (width, height), (old_width, old_height) = shape_of(made), shape_of(picture)
        assert width == old_width
        # A page that has changed much in length asks for `make pictures`.
        assert abs(height - old_height) < 0.25 * old_height, name
        for file in (made, picture):
            assert 0.5 * picture.stat().st_size < file.stat().st_size < LONGEST, file
