"""The shipped files: verified when read, refused when changed, attributed."""

import csv
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopwise import StopwiseError
from stopwise.paper.classifiers import read_table
from stopwise.paper.files import (
    CHECKSUMS,
    data_folder,
    parse_checksums,
    read_data,
    verified_text,
)
from stopwise.paper.instances import get_dataset, load_published


def test_every_shipped_file_is_listed_and_verified():
    names = {entry.name for entry in data_folder().iterdir()} - {CHECKSUMS}
    listed = parse_checksums((data_folder() / CHECKSUMS).read_text())
    assert set(listed) == names
    for name in names:
        assert read_data(name)


def test_a_changed_a_missing_and_an_unlisted_file_are_refused(tmp_path):
    good = b"a,b\n1,2\n"
    digest = hashlib.sha256(good).hexdigest()
    (tmp_path / CHECKSUMS).write_text(
        f"{digest}  good.csv\n{digest}  bad.csv\n{digest}  gone.csv\n"
    )
    (tmp_path / "good.csv").write_bytes(good)
    (tmp_path / "bad.csv").write_bytes(good.replace(b"2", b"3"))
    (tmp_path / "other.csv").write_bytes(good)
    assert verified_text(tmp_path, "good.csv") == good.decode()
    with pytest.raises(StopwiseError, match=r"bad\.csv: its SHA-256 is"):
        verified_text(tmp_path, "bad.csv")
    with pytest.raises(StopwiseError, match=r"gone\.csv: missing"):
        verified_text(tmp_path, "gone.csv")
    with pytest.raises(StopwiseError, match="does not list"):
        verified_text(tmp_path, "other.csv")


names = st.text(
    st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20
)  # no spaces, no line ends


@given(st.dictionaries(names, st.text("0123456789abcdef", min_size=1, max_size=64), max_size=5))
def test_checksums_round_trip(sums):
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    assert parse_checksums(text) == sums


@given(st.text(max_size=60))
def test_checksums_parse_or_are_refused(text):
    lines = [line for line in text.splitlines() if line]
    readable = all(line.partition("  ")[2] for line in lines)
    different = len({line.partition("  ")[2] for line in lines}) == len(lines)
    if readable and different:
        assert len(parse_checksums(text)) == len(lines)
    else:
        with pytest.raises(StopwiseError, match=CHECKSUMS):
            parse_checksums(text)


def test_sizes_and_attribution():
    header, pima = read_table("pima.csv")
    assert (len(header), pima.shape) == (9, (768, 9))
    _, heart = read_table("heart_cleveland.csv")
    assert heart.shape == (297, 14)
    assert len(list(csv.reader(io.StringIO(read_data("heart_cleveland.csv"))))) == 304
    text = read_data("ATTRIBUTION.md")
    for word in ("CC0", "CC BY 4.0", "Janosi", "Steinbrunn", "Pfisterer", "Detrano"):
        assert word in text


def test_published_points_are_complete():
    published = load_published()
    over_rounds = [key for key in published if key.figure != "2c"]
    assert len(over_rounds) == 15 + 6
    for key in over_rounds:
        assert sorted(published[key]) == [1000.0 * k for k in range(1, 11)]
    for key in set(published) - set(over_rounds):
        assert sorted(published[key]) == pytest.approx([0.03 * k for k in range(-4, 5)])
    assert sum(len(points) for points in published.values()) == 228


def test_unknown_names_are_refused():
    with pytest.raises(StopwiseError, match="dataset: got 'iris'"):
        get_dataset("iris")
    with pytest.raises(StopwiseError, match="instance: got 6"):
        get_dataset("bsc").instance(6)
