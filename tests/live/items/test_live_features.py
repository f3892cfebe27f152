"""Features beyond the segment: told with an item, binned into its situation, used by rules."""

import asyncio
from typing import Any

import numpy as np
import pytest

from stopwise.checks import StopwiseError
from stopwise.costs import Costs
from stopwise.live import Cascade, Learner, Stage
from stopwise.policies.per_item.alone.rule import AloneRule
from stopwise.policies.per_item.logistic.rule import LogisticRule
from stopwise.policies.per_item.rule import Rule
from stopwise.situations.observations import Observations

NAMES, PER_STAGE, MISTAKE = ("small", "large"), [1.0, 5.0], 40.0
COSTS = Costs.from_stages(PER_STAGE, MISTAKE)


def rows_of(number=1200, seed=1):
    """The small stage is right on short texts and a coin on long ones; the label tells nothing."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 100, number)
    truth = rng.integers(0, 2, number)
    small = np.where(length > 50, rng.integers(0, 2, number), truth)
    meaning = np.stack([length / 100 + rng.normal(0, 0.05, number), rng.normal(size=number)], 1)
    country = np.where(length > 50, "fr", "de")
    features = {"length": length.astype(float), "country": country, "meaning": meaning}
    return Observations(("no", "yes"), np.stack([small, truth], 1), None, features)


ROWS = rows_of()


def only(rows, *names):
    return Observations(
        rows.labels, rows.codes, None, {name: rows.features[name] for name in names}
    )


def stages_of(rows=ROWS):
    def make(at):
        return Stage(NAMES[at], lambda item: rows.labels[rows.codes[item, at]], cost=PER_STAGE[at])

    return [make(0), make(1)]


def features_of(*names, rows=ROWS):
    return lambda item: {name: rows.features[name][item] for name in names}


@pytest.mark.parametrize("name", ["length", "country"])
def test_a_rule_fitted_with_a_feature_decides_live_as_on_the_log(name):
    rows = only(ROWS, name)
    rule = Rule.fit(NAMES, rows.where(np.arange(900)), COSTS, reference="last")
    cascade = Cascade(
        stages_of(), "per-item:kappa=0", rule=rule, mistake_cost=MISTAKE, features=features_of(name)
    )
    expected = rule.depths(rows.where(np.arange(900, 1000)))
    found = [NAMES.index(cascade.answer(item).depth) for item in range(900, 1000)]
    assert found == expected.tolist()
    assert set(found) == {0, 1}


def test_a_feature_is_learned_live_by_item_by_batch_and_async():
    policy = "per-item:reference=last"
    plain = Cascade(stages_of(), policy, mistake_cost=MISTAKE, features=features_of("length"))
    batch, loop = (Cascade(stages_of(), policy, mistake_cost=MISTAKE) for _ in range(2))
    given = [{"length": value} for value in ROWS.features["length"]]
    for item in range(800):
        plain.answer(item)
    batch.answer_many(range(800), features=given[:800], batch_size=16).collect()

    async def run():
        for item in range(800):
            await loop.answer_async(item, features=given[item])
        found = loop.answer_many_async(range(800, 1000), features=given[800:1000])
        return [answer.depth async for answer in found]

    late = asyncio.run(run())
    long = np.asarray(ROWS.features["length"][800:1000]) > 60
    for found in (
        [plain.answer(item).depth for item in range(800, 1000)],
        [a.depth for a in batch.answer_many(range(800, 1000), features=given[800:1000])],
        late,
    ):
        deep = np.asarray(found) == "large"
        assert deep[long].mean() > 0.75
        assert deep[~long].mean() < 0.5
    for cascade in (plain, batch, loop):
        assert [f.name for f in cascade.learner.transitions.binning.features] == ["length"]


def test_segments_are_a_feature_of_what_is_learned_live():
    cascade = Cascade(stages_of(), "per-item:reference=last", mistake_cost=MISTAKE)
    for item in range(1000):
        cascade.answer(item, segment=ROWS.features["country"][item])
    binning = cascade.learner.transitions.binning
    assert [(f.name, sorted(f.values)) for f in binning.features] == [("segment", ["de", "fr"])]
    depths = {
        s: [cascade.answer(i, segment=s).depth for i in range(1000, 1100)] for s in ("de", "fr")
    }
    assert depths["fr"].count("large") > 95 > 5 >= depths["de"].count("large")


@pytest.mark.parametrize("names", [("length",), ("country",), ("meaning", "country"), ()])
def test_a_rule_of_regressions_decides_live_as_on_the_log(tmp_path, names):
    import json

    rows = only(ROWS, *names)
    fitted = LogisticRule.fit(NAMES, rows.where(np.arange(900)), COSTS, reference="last")
    path = tmp_path / "rule.json"
    path.write_text(json.dumps(fitted.to_dict()))
    cascade = Cascade(
        stages_of(), "per-item:kappa=0,always_full=1", rule=path, mistake_cost=MISTAKE,
        features=features_of(*names),
    )  # fmt: skip
    cascade.answer(0)
    expected = fitted.depths(rows.where(np.arange(900, 1100)))
    answers = [cascade.answer(item) for item in range(900, 1100)]
    assert [NAMES.index(answer.depth) for answer in answers] == expected.tolist()
    assert len(set(expected.tolist())) == (2 if names else 1)
    assert cascade.learner.transitions.rounds == 201  # counted all the same


def test_a_rule_of_regressions_is_kept_through_a_store(tmp_path):
    from stopwise.live import SqliteStore

    rows = only(ROWS, "length")
    fitted = LogisticRule.fit(NAMES, rows.where(np.arange(900)), COSTS, reference="last")
    for turn in range(2):
        store = SqliteStore(tmp_path / "rounds.db")
        cascade = Cascade(stages_of(), rule=fitted, mistake_cost=MISTAKE, store=store)
        for item in range(60):
            cascade.answer(item, features=features_of("length")(item))
        assert cascade.learner.transitions.rounds == 60 * (turn + 1)
        cascade.close()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"length": [1, 2]}, "feature length: .* takes vectors"),
        ({"length": object()}, "feature length: got .* but need a number, a text"),
        ({"length": float("inf")}, "feature length: .* finite"),
        ([1], "features: got .1., but need an object"),
        ({str(at): at for at in range(4)}, "features: got .* at most 3"),
        ({3: 1}, "features: got 3, but need names"),
    ],
)
def test_what_is_no_feature_is_refused_before_a_stage_is_called(features, message):
    calls: list[Any] = []
    stages = [Stage("a", calls.append), Stage("b", calls.append, cost=1)]
    cascade = Cascade(stages, "per-item", mistake_cost=10)
    with pytest.raises(StopwiseError, match=message):
        cascade.answer("item", features=features)
    assert not calls
    cascade.answer("item", features={"length": 3, "none": None})


def test_features_where_nobody_looks_at_them_are_refused():
    with pytest.raises(StopwiseError, match=r"policy: got .*, but need one that decides per item"):
        Learner([0, 1]).begin(features={"a": 1})
    with pytest.raises(StopwiseError, match=r"features: got .* decides per item"):
        Cascade(stages_of(), features=features_of("length"))
    with pytest.raises(StopwiseError, match="features: 1 were given for 2 items"):
        Cascade(stages_of(), "per-item").answer_many([1, 2], features=[{}]).collect()


def test_a_text_where_the_rule_knows_a_number_is_refused():
    rule = Rule.fit(NAMES, only(ROWS, "length"), COSTS)
    cascade = Cascade(stages_of(), rule=rule, mistake_cost=MISTAKE)
    with pytest.raises(StopwiseError, match="feature length: got 'long', but need a number"):
        cascade.answer(1, features={"length": "long"})


def test_a_feature_that_the_rule_was_not_fitted_on_is_refused(tmp_path):
    """A misspelt one would count as not given, and nobody would know."""
    numbers = only(ROWS, "length")
    alone = AloneRule.fit(NAMES, numbers, COSTS)
    table, regressions = Rule.fit(NAMES, numbers, COSTS), LogisticRule.fit(NAMES, numbers, COSTS)
    for rule, calls in ((table, "cascade"), (regressions, "cascade"), (alone, "alone")):
        cascade = Cascade(stages_of(), rule=rule, mistake_cost=MISTAKE, calls=calls)
        with pytest.raises(StopwiseError, match="'lenght'; did you mean 'length'"):
            cascade.answer(1, features={"lenght": 7})
        cascade.answer(1, features={"length": 7})
        cascade.answer(1)
