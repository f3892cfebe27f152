"""The pages and the API say of a cascade what `analyze` says of its log."""

from __future__ import annotations

import html
import io
import random
from collections import Counter
from dataclasses import replace

import mpmath
import numpy as np
import polars
import pytest
from service_helpers import Maker

import stopwise as sw
from stopwise.logs.formatting import share
from stopwise.logs.reading.bills import Spread
from stopwise.logs.reading.costs import PARTS, CostBounds, mean_bounds
from stopwise.logs.reporting.headline import disagreement_sentence, headline, title_and_reason
from stopwise.logs.reporting.words import pair_sentence
from stopwise.service.cascades.cost_bounds import _CURVES, mean_low, with_measured_costs
from stopwise.service.cascades.counting import sums_of
from stopwise.service.cascades.forms import Call, Finished, RequestDecision, Why
from stopwise.service.cascades.reported_rounds import finished_of
from stopwise.service.cascades.verdicts import judged_of
from stopwise.service.core import Service
from stopwise.service.http.access import LOCAL

NAMES = ["rule", "model", "person"]


def play(
    service: Service,
    errors: tuple[float, ...],
    rounds: int,
    costs: tuple[float, ...] = (),
    seed: int = 5,
) -> None:
    """Rounds of a made-up cascade, as the API would end them; a call costs one of `costs`."""
    cascade, dice = service.cascades["support"], random.Random(seed)
    for _ in range(rounds):
        decision = cascade.decide()
        truth = dice.randrange(3)
        told = {
            str(at): {
                "output": truth if dice.random() >= error else (truth + dice.randrange(1, 3)) % 3,
                "failed": None, "cost": dice.choice(costs) if costs else None, "seconds": 0.0,
            }
            for at, error in enumerate(errors)
        }  # fmt: skip
        form = {"decision": dict(vars(decision)), "first": 0, "reported": told}
        service.open_rounds.begin(decision.id, "support", form)
        service.recorder.put(finished_of(cascade, decision.id, form, "", abandoned=False))
    assert service.recorder.drain(30)


@pytest.mark.parametrize(
    ("errors", "mistake_cost"),
    [((0.3, 0.2, 0.05), 600.0), ((0.12, 0.1, 0.02), 150.0), ((0.04, 0.04, 0.03), 30.0)],
)
def test_the_headline_is_that_of_analyze(
    make: Maker, errors: tuple[float, ...], mistake_cost: float
) -> None:
    client, service = make(models=NAMES, api_only=True, mode="advise", mistake_cost=mistake_cost)
    play(service, errors, 400)
    log = client.get("/api/v1/cascades/support/log").content
    frame = polars.read_csv(io.BytesIO(log)).select("item", *NAMES)
    costs = tuple(float(cost) for cost in service.cascades["support"].learner.costs.per_stage)
    found = sw.analyze(frame, stages=NAMES, costs=costs, mistake_cost=mistake_cost)
    told = client.get("/api/v1/cascades/support/verdict").json()
    readings = found.readings
    assert readings.headline_stage is not None
    assert told["headline_stage"] == NAMES[readings.headline_stage]
    assert told["headline_reading"] == readings.headline_reading
    assert told["sentence"] == headline(found.verdict, readings)
    other = disagreement_sentence(found.verdict, readings)
    assert other is None or other in told["more"]
    rates = told["readings"]["estimated"]["error_rates"]
    assert np.allclose(rates, readings.error_rates)
    page = client.get("/ui/c/support").text
    assert "`" not in page
    for part in title_and_reason(found.verdict, readings):
        assert html.escape(part) in page.replace("<code>", "`").replace("</code>", "`")


def test_the_headline_is_that_of_analyze_at_measured_prices(make: Maker) -> None:
    """The guess that a rule starts from (`typical_tokens`) is no call: a log does not know it."""
    client, service = make(models=NAMES, mode="advise", mistake_cost=0.1)
    play(service, (0.3, 0.1, 0.02), 200, (0.0005, 0.0035))
    log = polars.read_csv(io.BytesIO(client.get("/api/v1/cascades/support/log").content))
    found = sw.analyze(log, stages=NAMES, mistake_cost=0.1)
    told = client.get("/api/v1/cascades/support/verdict").json()
    assert told["sentence"] == headline(found.verdict, found.readings)
    for pair, line in zip(found.verdict.pairs, told["pairs"], strict=True):
        assert line["threshold"] == pytest.approx(pair.threshold)
    explained = client.get("/api/v1/cascades/support/explain").json()
    assert np.allclose(explained["costs"], found.verdict.costs.per_stage)
    assert explained["costs"] != list(service.cascades["support"].learner.own_costs.per_stage)


def test_measured_costs_make_nothing_certain_before_analyze(make: Maker) -> None:
    # Priced by tokens: what a call costs is a mean that the log is judged by too.
    client, service = make(models=["small", "large"], mode="advise", mistake_cost=0.1)
    said = []
    for part in range(11):
        play(service, (0.0, 0.0), 200 if part == 0 else 20, (0.0005, 0.0035), seed=part)
        log = polars.read_csv(io.BytesIO(client.get("/api/v1/cascades/support/log").content))
        found = sw.analyze(log, stages=["small", "large"], mistake_cost=0.1).verdict.pairs[0]
        judged = judged_of(service.cascades["support"], service.rounds.sums("support"))
        assert judged is not None
        pair = judged.verdict.pairs[0]
        assert 0.8 * found.threshold_low < pair.threshold_low <= found.threshold_low
        said.append((pair.certain, found.certain))
    assert (True, False) not in said
    assert said[0] == (False, False)
    assert said[-1] == (True, True)


@pytest.mark.parametrize("why", ["pinned", "many choices", "budget", "not sampled", ""])
def test_costs_of_calls_that_are_no_fair_sample_neither_prove_nor_unsettle_anything(
    why: Why,
) -> None:
    bounds = CostBounds((1.0, 2.0), (1.0, 2.0), measured=False, own=(1.0, 2.0))

    def low(decision: RequestDecision, *stages: int) -> float:
        calls = tuple(Call(stage, "yes", cost=2.0) for stage in stages)
        one = sums_of(Finished(decision, calls, stages[-1]), None, 1, 2)
        many = {name: 900 * value for name, value in one.items()}
        return with_measured_costs(bounds, many, 0.99).low[1]

    drawn = RequestDecision("a", "c", "", "enforce", 1, 0.5)
    odd = RequestDecision("b", "c", "", "enforce", 1, 1.0, uncounted=why)
    fair = why in ("", "not sampled")
    assert (low(odd, 1) > 1.8) is fair
    # A stage that was called in the place of another, or because that gave no answer.
    assert low(replace(drawn, depth=0), 0, 1) == 0
    both = Counter(sums_of(Finished(drawn, (Call(0), Call(1, "yes", cost=2.0)), 1), None, 1, 2))
    both = Counter({name: 900 * value for name, value in both.items()})
    both.update(sums_of(Finished(odd, (Call(1, "yes", cost=2.0),), 1), None, 1, 2))
    # One such call takes nothing from what the others prove.
    assert with_measured_costs(bounds, both, 0.99).low[1] > 1.8
    # Rows of which it is not known how their calls came about prove nothing.
    unknown = {name: value for name, value in both.items() if not name.startswith("drawn:")}
    assert with_measured_costs(bounds, unknown, 0.99).low[1] == 0


@pytest.mark.parametrize("kind", ["even", "skewed", "rare"])
@pytest.mark.parametrize("number", [2, 30, 1000, 40_000])
def test_the_bound_from_sums_lies_below_that_of_each_cost(kind: str, number: int) -> None:
    dice = np.random.default_rng(3)
    costs = {
        "even": np.full(number, 0.002),
        "skewed": dice.lognormal(-6, 1.2, number),
        "rare": np.where(dice.random(number) < 0.02, 1.0, 1e-4),
    }[kind]
    spread = Spread(costs, np.ones(number))
    low = mean_low(number, float(costs.sum()), float((costs**2).sum()), 0.001)
    assert 0 <= low <= mean_bounds(spread, 0.001)[0]
    if number == 40_000:  # also where one call in fifty pays for all
        assert low > (0.82 if kind == "rare" else 0.95) * costs.mean()


def test_costs_that_few_calls_pay_for_are_bounded_in_time() -> None:
    """One call in a thousand: the bound comes closer and closer, and was 0 for ever."""
    rare, number = 0.001, np.array([10_000, 100_000, 1_000_000, 100_000_000])
    low = [mean_low(n, rare * n, rare * n, 0.001) / rare for n in number]
    assert low == sorted(low)
    assert low[-2] > 0.85
    assert low[-1] > 0.98


def test_curves_of_small_parts_are_no_smaller_than_they_are() -> None:
    with mpmath.workdps(50):
        parts = [mpmath.mpf(float(part)) for part in PARTS]
        exact = [float((-mpmath.log(1 - part) - part) / part**2) for part in parts]
    assert (np.array(exact) * (1 - 1e-12) <= _CURVES).all()
    assert np.allclose(_CURVES, exact, rtol=1e-6)


def test_evidence_from_elsewhere_is_read_by_its_pairs(make: Maker) -> None:
    client, service = make(models=NAMES, api_only=True, mode="advise", mistake_cost=600.0)
    play(service, (0.3, 0.2, 0.05), 50)
    more = sw.Evidence.from_counts(
        [[0, 900, 900], [0, 0, 900], [0, 0, 0]], [[0, 300, 280], [0, 0, 200], [0, 0, 0]]
    )
    service.cascades["support"].learner.add_evidence(more)
    told = client.get("/api/v1/cascades/support/verdict").json()
    estimated = told["readings"]["estimated"]
    assert estimated["stage"] is not None
    assert estimated["error_rates_low"] is None  # no patterns, so no intervals


@pytest.mark.parametrize("reading", ["auto", "weak-dominance", "minimax"])
def test_requests_that_are_not_counted_go_to_the_stage_of_the_headline(
    make: Maker, reading: str
) -> None:
    _, service = make(
        models=NAMES, api_only=True, mode="advise", mistake_cost=150.0, reading=reading
    )
    cascade = service.cascades["support"]
    assert cascade.uncounted("", "many choices").depth == 2  # advise: what is served today
    service.set_mode(cascade, "enforce", LOCAL, "nothing is known yet")
    assert cascade.uncounted("", "many choices").depth == 2
    service.set_mode(cascade, "advise", LOCAL, "look first")
    play(service, (0.12, 0.1, 0.02), 400)
    service.set_mode(cascade, "enforce", LOCAL, "now")
    judged = judged_of(cascade, service.rounds.sums("support"))
    assert judged is not None
    readings = judged.readings
    stages = {
        "auto": readings.headline_stage,
        "weak-dominance": judged.verdict.recommended,
        "minimax": judged.verdict.minimax_stage,
    }
    assert judged.stage == stages[reading]
    assert cascade.uncounted("", "many choices").depth == stages[reading]
    assert cascade.uncounted("a segment that is new", "budget").depth == stages[reading]
    # The three are not all the same here, or this would show nothing.
    assert judged.verdict.recommended != judged.verdict.minimax_stage


def test_where_requests_stop_before_the_last_stage_the_stages_up_to_there_are_judged(
    make: Maker,
) -> None:
    client, service = make(
        models=NAMES, api_only=True, mode="advise", run_to="model", mistake_cost=30.0
    )
    told = client.get("/api/v1/cascades/support/verdict").json()
    assert told["sentence"].startswith("Nothing can be said yet")
    play(service, (0.04, 0.03), 400)
    told = client.get("/api/v1/cascades/support/verdict").json()
    log = client.get("/api/v1/cascades/support/log").content
    frame = polars.read_csv(io.BytesIO(log)).select("item", *NAMES[:2])
    found = sw.analyze(frame, stages=NAMES[:2], costs=(1.0, 10.0), mistake_cost=30.0)
    said = headline(found.verdict, found.readings)
    assert told["sentence"] == f"Of the stages up to model: {said}"
    assert told["more"][0].startswith("Of person nothing is known: in the mode advise requests")
    assert told["nothing_deeper_pays"] is False  # of person nothing is known
    assert [pair["verdict"] for pair in told["pairs"]] == [
        "certain", "not compared yet", "not compared yet",
    ]  # fmt: skip
    for page in ("/ui/", "/ui/c/support", "/ui/c/support/mode"):
        text = client.get(page).text
        assert "certain up to model" in text, page
        assert '<span class="certain">certain</span>' not in text
    # Enforced, requests go to the last stage too: there is more to be known.
    service.set_mode(service.cascades["support"], "enforce", LOCAL, "to see")
    told = client.get("/api/v1/cascades/support/verdict").json()
    assert told["sentence"].startswith("Nothing can be said yet")


def test_where_requests_stop_at_the_first_stage_it_is_said_that_nothing_is_compared(
    make: Maker,
) -> None:
    client, service = make(models=NAMES, api_only=True, mode="advise", run_to="rule")
    play(service, (0.1,), 20)
    told = client.get("/api/v1/cascades/support/verdict").json()
    assert "every request stops at rule, the first stage (`run_to`)" in told["sentence"]
    assert "every request stops at rule" in client.get("/ui/c/support/mode").text


def test_pages_say_what_is_certain_and_at_which_threshold(make: Maker) -> None:
    """Certain rests on lower bounds of what calls cost: these are shown, with `analyze`'s words."""
    client, service = make(models=NAMES[:2], mode="advise", mistake_cost=0.1)
    play(service, (0.01, 0.01), 300, costs=(0.02, 0.03))
    cascade = service.cascades["support"]
    judged = judged_of(cascade, service.rounds.sums("support"))
    assert judged is not None
    (pair,) = judged.verdict.pairs
    assert pair.certain
    assert pair.threshold_low < 0.95 * pair.threshold
    (line,) = client.get("/api/v1/cascades/support/verdict").json()["pairs"]
    assert line["threshold_low"] == pytest.approx(pair.threshold_low)
    assert line["sentence"] == pair_sentence(judged.verdict, pair)
    page = client.get("/ui/c/support").text
    assert f"<title>threshold {pair.threshold_low:.3g}</title>" in page
    assert f"{share(pair.threshold_low)} <span" in page
    assert html.escape(line["sentence"]) in page
    certain = '<span class="certain">certain</span>'
    for path in ("/ui/", "/ui/c/support"):
        text = " ".join(client.get(path).text.split())
        assert f"{certain} that no deeper stage is worth its price, after 300" in text, path


def test_the_audit_goes_by_the_costs_of_the_verdict(make: Maker) -> None:
    """Means of what calls cost, not those of the rule, in which a guess counts as a call."""
    client, service = make(models=NAMES[:2], mode="advise", mistake_cost=0.1)
    play(service, (0.4, 0.1), 12, costs=(0.00002,))
    cascade = service.cascades["support"]
    (line,) = client.get("/api/v1/cascades/support/verdict").json()["pairs"]
    (pair,) = client.get("/api/v1/cascades/support/audit").json()["pairs"]
    assert pair["threshold"] == pytest.approx(line["threshold"])
    assert line["threshold"] == pytest.approx(0.0002)
    assert cascade.learner.costs.thresholds[0, 1] > 0.001


def test_pages_ask_whether_where_nobody_can_know(make: Maker) -> None:
    """ "Not knowable that no deeper stage pays" would sound as if it were so."""
    client, service = make(models=NAMES, api_only=True, mode="advise")
    play(service, (0.4, 0.05, 0.2), 300)
    judged = judged_of(service.cascades["support"], service.rounds.sums("support"))
    assert judged is not None
    assert judged.stage < 2
    question = "whether a deeper stage is worth its price"
    unknown = '<span class="open">not knowable without labels</span>'
    for path in ("/ui/", "/ui/c/support"):
        assert f"{unknown} {question}, after" in " ".join(client.get(path).text.split()), path
    assert (
        'href="/ui/c/support/labels">Labels</a> is that audit' in client.get("/ui/c/support").text
    )
    labels = judged.readings.labels_to_settle
    page = " ".join(client.get("/ui/c/support/labels").text.split())
    assert f"0 labels given; about {labels} in all are likely to settle it, at most " in page
    for mode, words in (("advise", "would cost about"), ("enforce", "costs about")):
        service.set_mode(service.cascades["support"], mode, LOCAL, "to see")
        page = " ".join(client.get("/ui/c/support/mode").text.split())
        assert f"Enforcing {words}" in page
        assert "one call of person, which answers without Stopwise" in page
        assert f"and {question} is {unknown}." in page
