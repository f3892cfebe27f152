"""What the report says in words: setting, bounds with their doubts, what differs and why."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from stopwise.paper.classifiers import distance_to_printed, heart_readings, retrained_heart
from stopwise.paper.comparison import ComparedPoint
from stopwise.paper.page import show_margin, show_regret, sign, table
from stopwise.paper.running import PaperSettings
from stopwise.paper.tables import InstanceRow
from stopwise.theory import (
    ALPHA,
    DOUBT_SMALL_MARGINS,
    DOUBT_TRANSITIVITY,
    theorem1_bound,
    theorem2_bound,
    uss_ucb_bound,
)

EPSILON = 0.1
"""The epsilon at which Theorem 1 is shown."""

_SETTING = """
<h2 id=setting>Setting</h2>
<p>A cascade has K arms (Stopwise calls them stages): classifiers or tests, ordered from cheap to
expensive. In each round the learner stops at one arm, sees the outputs of all arms up to it, and
pays their cumulative cost C<sub>i</sub>, and 1 more if that arm's output is wrong. It is never told
whether it was. The optimal arm minimises γ<sub>i</sub> + C<sub>i</sub>, error rate plus cost;
regret is what was paid beyond that, counted in mistakes.</p>
<p>All that can be learned is how often two arms disagree, p<sub>ij</sub>. That suffices exactly
under <em>weak dominance</em> (WD):
ξ = min<sub>j&gt;i*</sub> (C<sub>j</sub> − C<sub>i*</sub> − p<sub>i*j</sub>) &gt; 0.
<em>Strong dominance</em> (SD) asks that an arm that is right has only right arms after it, and
implies WD. USS-TS keeps a Beta(1, 1) posterior for every pair, samples each, and stops at the first
arm whose sampled disagreements all stay below the price of going deeper.</p>
<p>Neither the classifiers nor the generator behind the figures are published. So every instance is
run from two <em>sources</em>:</p>
<ul>
<li><b>retrained</b> (PIMA, Heart): logistic regressions trained again from the data, out-of-fold
predictions, met in the order of the rows over and over (round-robin), as the paper does;
<b>as printed</b> (BSC): the generator that the text describes.</li>
<li><b>calibrated</b>: the printed error rates, with the three disagreement rates fitted to the
published curves of figure 1 by least squares, under the condition that all five instances keep
their printed optimal arm and WD flag; independent draws. It is a fit to the figure. That it
reproduces the figure says that the figure is consistent with USS-TS on <em>some</em> joint
distribution, and no more.</li>
</ul>
"""

_THEOREM_1 = Template("""
<h2 id=bounds>Bounds, and our doubts</h2>
<p><b>Theorem 1</b> (problem-dependent):
Σ<sub>j&gt;i*</sub> (1 + ε) ln T / d(p<sub>i*j</sub>, p<sub>i*j</sub> + ξ<sub>j</sub>)
Δ<sub>j</sub>, plus O((K − i*) / ε²), whose constant is not stated and which is left out below,
with ε = $epsilon. It is zero where the last arm is optimal. <b>USS-UCB</b>: the bound of Verma et
al. (2019) at α = 0.5.</p>
""")

_THEOREM_2 = Template("""
<div class="doubt"><b>Doubt about transitivity.</b> $transitivity</div>
<p><b>Theorem 2</b> (problem-independent), K = 3, T = $horizon, α = $alpha:
2 (α K T ln T)<sup>1/2</sup> = $strong under strong dominance,
2 (6 α K ln T)<sup>1/3</sup> T<sup>2/3</sup> = $weak under weak dominance. The paper leaves α open;
10 is what its appendix gives for the arms beyond the optimal one, and the constant for those before
it is hidden in a Θ.</p>
<div class="doubt"><b>Doubt about small margins.</b> $small_margins</div>
""")

_DIFFERENCES = Template("""
<h2 id=differences>What differs, and why</h2>
<p><b>Flags that do not match:</b> $flags.</p>
<p><b>BSC.</b> The generator in the text has error rates of 0.40, 0.18 and 0.14. The first and third
fit the printed 0.3937 and 0.1358 as averages of 10,000 draws; the second, 0.2899, does not. So the
disagreements differ too, and with them WD. What the authors ran is not recovered.</p>
<p><b>PIMA.</b> The printed rates are averages over the 10,000 rounds and decode to 238, 179 and 175
errors in 768. Retrained: $pima_errors. Regret depends on the order of the rows and on a few
predictions, so it is near the published one, not equal. On instance 5 every round is paid, and
two errors fewer of arm 1 make its gap larger.</p>
<p><b>Heart.</b> The paper has 12 features, the data 13. Its first classifier uses “the first 6
features”, among them “cholesterol readings, blood sugar, and rest-ECG”; rest-ECG is the
seventh column, so one of the four columns before cholesterol is missing. Of these four readings we
take the one whose error rates are nearest to the printed 0.2929, 0.2025, 0.1483 in the sum of
squares. The rule looks at nothing else: the flags, and the regret, fall as they do.</p>
$readings
<p><b>Figures 2a and 2b.</b> The paper does not name the instance. Algorithm 2 is run as printed in
its source, where the counters of all arms but the last start at zero. Both UCB rules are
deterministic, so over a round-robin of rows all replications are one and their interval has no
width.</p>
<p><b>Figure 2c.</b> The paper states neither the costs nor the joint distribution. At ξ = 0
exactly, a sampled disagreement is about as likely above its threshold as below, for ever: the
regret there depends on every detail of the distribution.</p>
<p><b>Stream.</b> Calibrated instances draw independently. With a round-robin over 768 or 297 rows
the regret depends on the order of the rows, which is not published, so no order could be claimed to
be the paper's.</p>
""")

_REPEAT = Template("""
<h2 id=repeat>Repeat it</h2>
<pre>stopwise reproduce --out DIR --replications $replications --horizon $horizon --seed $seed</pre>
<p>The same settings give the same files, whatever the number of jobs; an interrupted run goes on
where it stopped. Beside this page: <code>tables/instances.csv</code>, <code>regret.csv</code>
(every point of every curve), <code>figures/</code> (SVG and PNG), <code>problems/</code> (every
instance, to try a policy of your own on) and <code>runs/</code> (one file for each simulation).</p>
<pre>stopwise simulate DIR/problems/pima-3-calibrated.json --policy uss-ts \\
    --horizon $horizon --replications $replications --seed $seed</pre>
""")


def setting() -> str:
    """What is learned, from what, and from which sources the problems come."""
    return _SETTING


def bounds(
    rows: Sequence[InstanceRow], compared: Sequence[ComparedPoint], settings: PaperSettings
) -> str:
    """The theorems as stated, in numbers, each with the doubt about it."""
    horizon = settings.horizon
    measured = {
        (row.run.dataset, row.run.instance, row.run.source): row.ours.mean
        for row in compared
        if row.run.policy_name == "uss-ts" and row.run.x is None
    }
    lines = []
    for row in rows:
        if row.source != "calibrated" or not row.problem.weak_dominance:
            continue
        ours = measured.get((row.dataset.name, str(row.instance.number), row.source))
        lines.append(
            [
                f"{row.dataset.title} {row.instance.number}",
                show_margin(row.problem.margin),
                "" if ours is None else show_regret(ours),
                show_regret(float(theorem1_bound(row.problem, horizon, epsilon=EPSILON))),
                show_regret(float(uss_ucb_bound(row.problem, horizon, alpha=0.5))),
            ]
        )
    columns = (
        "Instance (calibrated)", "ξ", f"USS-TS at T = {horizon:,}", "Theorem 1, leading term",
        "USS-UCB's bound",
    )  # fmt: skip
    second = _THEOREM_2.substitute(
        transitivity=escape(DOUBT_TRANSITIVITY),
        small_margins=escape(DOUBT_SMALL_MARGINS),
        horizon=f"{horizon:,}",
        alpha=f"{ALPHA:g}",
        strong=show_regret(float(theorem2_bound(3, horizon, dominance="strong"))),
        weak=show_regret(float(theorem2_bound(3, horizon, dominance="weak"))),
    )
    return _THEOREM_1.substitute(epsilon=f"{EPSILON:g}") + table(columns, lines) + second


def differences(rows: Sequence[InstanceRow]) -> str:
    """Where ours and the paper part, and why."""
    flags = "; ".join(
        f"{row.dataset.name} {row.instance.number} ({row.source}): optimal arm {row.optimal_arm},"
        f" printed {row.instance.optimal_arm}, WD {sign(row.problem.weak_dominance)},"
        f" printed {sign(row.instance.weak_dominance)}"
        for row in rows
        if not row.match
    )
    chosen = retrained_heart().dropped
    readings = [
        [
            f"without {name}" + (" (taken)" if name == chosen else ""),
            *(f"{errors / len(found.truth):.4f}" for errors in found.errors),
            f"{distance_to_printed(found):.5f}",
        ]
        for name, found in heart_readings().items()
    ]
    pima = next(
        row.problem for row in rows if row.dataset.name == "pima" and row.source == "retrained"
    )
    return _DIFFERENCES.substitute(
        flags=escape(flags) or "none",
        pima_errors=", ".join(f"{rate * 768:.0f}" for rate in pima.error_rates),
        readings=table(("Reading of Heart", "γ1", "γ2", "γ3", "Sum of squares"), readings),
    )


def repeat(settings: PaperSettings) -> str:
    """How to run it again, all of it or one instance."""
    return _REPEAT.substitute(vars(settings))
