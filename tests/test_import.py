"""The front door: light, complete, and helpful to those who mistype."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stopwise as sw
from stopwise.policies.registry import policy_class, policy_names

HEAVY = ("scipy", "numba", "sklearn", "matplotlib", "joblib", "polars", "typer", "rich", "pandas")
LAZY_PACKAGES = (
    "stopwise", "stopwise.policies", "stopwise.logs", "stopwise.paper", "stopwise.simulation",
    "stopwise.bench", "stopwise.live.observing",
)  # fmt: skip
# What is small enough to load all of its names at once.
WHOLE_PACKAGES = (
    "stopwise.live", "stopwise.live.comparing", "stopwise.estimating", "stopwise.sklearn",
    "stopwise.theory", "stopwise.service.client",
)  # fmt: skip


def loaded_by(code):
    code += "; import sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "import stopwise; dir(stopwise); stopwise.policy_names(); stopwise.Evidence(2)",
        "import stopwise; stopwise.policies.UssTs(); stopwise.Learner; stopwise.Cascade",
        "import stopwise; p = stopwise.Problem.from_predictions([[0, 1], [1, 1]], [1, 1],"
        " stopwise.Costs.from_cumulative((0, 1))); p.weak_dominance; p.to_json()",
    ],
    ids=["import", "policies and live", "problem"],
)
def test_import_stays_light(code):
    loaded = loaded_by(code)
    assert "'numpy'" in loaded
    for name in HEAVY:
        assert f"'{name}'" not in loaded, f"{code} loads {name}"


def test_import_takes_less_than_a_third_of_a_second():
    """Beyond numpy, which every program like this imports: of the processor, the best of five."""
    code = (
        "import time, numpy; start = time.process_time(); import stopwise;"
        " print(time.process_time() - start)"
    )
    run = [sys.executable, "-c", code]
    seconds = [
        float(subprocess.run(run, capture_output=True, check=True, timeout=60).stdout)
        for _ in range(5)
    ]
    assert min(seconds) < 0.3


@pytest.mark.parametrize("package", LAZY_PACKAGES + WHOLE_PACKAGES)
def test_public_names_are_listed_and_load(package):
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__), "what is for users, and nothing else"
    for name in module.__all__:
        assert getattr(module, name) is not None or name == "ABSTAINED"


@pytest.mark.parametrize("package", LAZY_PACKAGES)
def test_what_editors_see_is_what_loads(package):
    """The imports under TYPE_CHECKING name each lazy name, from the very module it loads from."""
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    seen = {}
    for branch in (node for node in tree.body if isinstance(node, ast.If)):
        for node in branch.body if ast.unparse(branch.test) == "TYPE_CHECKING" else ():
            assert isinstance(node, ast.ImportFrom)
            for name in node.names:
                own = f"{node.module}.{name.name}"
                is_module = node.module == package
                seen[name.name] = own if is_module else node.module
    assert seen == module._WHERE
    assert set(seen) <= set(module.__all__)


@pytest.mark.parametrize("package", LAZY_PACKAGES + WHOLE_PACKAGES)
def test_a_checker_of_types_refuses_what_is_no_name(package):
    """It takes any name of a module for known where it sees a `__getattr__`; here it sees none."""
    tree = ast.parse(Path(importlib.import_module(package).__file__).read_text(encoding="utf-8"))
    hidden = [
        ast.unparse(node.body)
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"
    ]
    assert any("__getattr__" in body for body in hidden)
    seen = [node for node in tree.body if not isinstance(node, ast.If)]
    assert "__getattr__" not in ast.unparse(ast.Module(seen, []))


def test_every_policy_class_is_a_name_of_policies():
    for name in policy_names():
        found = policy_class(name)
        if found.__module__.startswith("stopwise.policies."):
            assert getattr(sw.policies, found.__name__) is found


@pytest.mark.parametrize(
    ("package", "wrong", "right"),
    [
        ("stopwise", "analyse", "analyze"),
        ("stopwise", "Cascde", "Cascade"),
        ("stopwise.policies", "UssTS", "UssTs"),
        ("stopwise.logs", "analyse", "analyze"),
        ("stopwise.live", "Cascde", "Cascade"),
        ("stopwise.simulation", "simulat", "simulate"),
        ("stopwise.bench", "make_famly", "make_family"),
        ("stopwise.theory", "kl_stepp", "kl_step"),
    ],
)
def test_an_unknown_name_is_told_the_nearest(package, wrong, right):
    with pytest.raises(AttributeError, match=f"{package}.*{wrong}.*nearest is '{right}'"):
        getattr(importlib.import_module(package), wrong)
    with pytest.raises(AttributeError) as error:
        getattr(sw, "nothing_like_it_at_all")  # noqa: B009
    assert "nearest" not in str(error.value)


TWO = {"a": 0, "b": 1}
MISSPELT = [
    (lambda **given: sw.analyze("log.csv", **given), "per_items", "per_item"),
    (lambda **given: sw.analyze("log.csv", **given), "mistake_costs", "mistake_cost"),
    (lambda **given: sw.analyze_evidence(sw.Evidence(2), **given), "nam", "name"),
    (lambda **given: sw.replay("log.csv", **given), "replication", "replications"),
    (lambda **given: sw.audit("log.csv", {}, **given), "stric", "strict"),
    (lambda **given: sw.fit("log.csv", **given), "polcy", "policy"),
    (lambda **given: sw.item_audit("log.csv", **given), "mistake_costs", "mistake_cost"),
    (lambda **given: sw.promise("log.csv", **given), "agreed", "agree"),
    (lambda **given: sw.logs.plan_audit("log.csv", **given), "tolerence", "tolerance"),
    (lambda **given: sw.logs.LogSettings(**given), "stage", "stages"),
    (sw.simulate_audit, "replication", "replications"),
    (sw.simulate, "horizont", "horizon"),
    (sw.run_sweep, "job", "jobs"),
    (sw.check_policy, "seeds", "seed"),
    (sw.Costs, "cumulativ", "cumulative"),
    (sw.Costs.from_stages, "mistake_costs", "mistake_cost"),
    (sw.Costs.from_cumulative, "mistake_costs", "mistake_cost"),
    (sw.Evidence, "stages", "stage_count"),
    (sw.Evidence.from_counts, "switch", "switched"),
    (sw.Problem, "output", "outputs"),
    (sw.Problem.from_predictions, "prediction", "predictions"),
    (sw.Problem.from_rates, "error_rate", "error_rates"),
    (sw.Problem.from_patterns, "pattern", "patterns"),
    (sw.CascadeClassifier, "mistakecost", "mistake_cost"),
    (lambda **given: sw.Learner(TWO, **given), "halflife", "half_life"),
    (lambda **given: sw.Cascade([], **given), "halflife", "half_life"),
    (sw.stage, "timeouts", "timeout"),
    (sw.RoundLog, "durabilty", "durability"),
    (sw.SqliteStore, "durabilty", "durability"),
    (sw.live.PostgresStore, "durabilty", "durability"),
    (sw.live.letter, "letter", "letters"),
    (sw.live.number, "relativ", "relative"),
    (sw.live.by, "labels", "label"),
    (sw.live.by_key, "labels", "label"),
    (sw.live.judge, "remembers", "remember"),
    (sw.live.tool_call, "ignores", "ignore"),
]


@pytest.mark.parametrize(("call", "given", "meant"), MISSPELT)
def test_a_misspelt_keyword_is_answered_with_the_nearest(call, given, meant):
    with pytest.raises(sw.StopwiseError, match=rf"unknown setting '{given}'; .*'{meant}'\?$"):
        call(**{given: 1})


def test_what_is_no_policy_and_no_labels_is_refused_by_name():
    sw.check_policy("fixed")
    for wrong in (sw.policies.UssTs, 3, "uss-tsx"):
        with pytest.raises(sw.StopwiseError, match=r"^policy: got .*, but need .*'uss-ts'"):
            sw.check_policy(wrong)
    for labels in (3, ["cat"], "labels.csv"):
        with pytest.raises(sw.StopwiseError, match=r"^labels: got .* the right answer by item"):
            sw.audit("log.csv", labels)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sw.analyze_evidence(3), "evidence: got 3, but need Evidence"),
        (lambda: sw.simulate_audit(3), "plan: got 3, but need what stopwise.logs.plan_audit"),
        (lambda: sw.item_audit("log.csv", 3), "labels: got 3, but need the right answer by item"),
        (lambda: sw.logs.Query(3, "select 1"), "log: got 3, but need"),
        (lambda: sw.logs.Query("sqlite:///a.db", 3), "sql: got 3, but need one SELECT"),
        (
            lambda: sw.simulate(
                sw.paper.problem("pima", 3), "fixed", horizon=3, replications=2, progress=3
            ),
            "progress: got 3, but need a function",
        ),
        (
            lambda: sw.run_sweep(sw.Sweep({"a": sw.paper.problem("pima", 3)}, ["fixed"], [5]), 3),
            "out: got 3, but need the name of a file",
        ),
    ],
)
def test_wrong_types_are_refused_by_name(call, message):
    with pytest.raises(sw.StopwiseError, match=f"^{re.escape(message)}"):
        call()


def settings_of(function):
    """The keywords that one may leave out: what a user chooses, and may mistype."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.default is not p.empty]


def functions_with_settings():
    for package in ("stopwise", "stopwise.paper", "stopwise.estimating", "stopwise.live.observing"):
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) and settings_of(thing):
                yield pytest.param(thing, id=f"{package}.{name}")
    for name in ("theorem1_bound", "uss_ucb_bound"):
        yield pytest.param(getattr(sw.theory, name), id=f"stopwise.theory.{name}")


# Called in every round, so that a wrapper would cost it time (see `tests/live/test_refused.py`),
# or by others than users: by scikit-learn, by a learner, by what reads a file.
UNWRAPPED = {
    "Learner.begin", "Round.observe", "Round.end", "Cascade.answer", "Cascade.answer_async",
    "TracedCascade.answer", "TracedCascade.answer_async", "Evidence.add",
    "CascadeClassifier.get_params", "RoundLog.attach", "RoundRecord.from_form", "LogSettings.of",
    "Retry.wait_before", "Consensus.error_rates",
}  # fmt: skip


def methods_with_settings():
    found = {}
    for package in (*LAZY_PACKAGES, *WHOLE_PACKAGES):
        module = importlib.import_module(package)
        for thing in (getattr(module, name) for name in module.__all__):
            for name, method in vars(thing).items() if inspect.isclass(thing) else ():
                function = getattr(method, "__func__", method)
                public = inspect.isfunction(function) and not name.startswith("_")
                if public and thing.__module__.startswith("stopwise") and settings_of(function):
                    found[f"{thing.__name__}.{name}"] = function
    assert found.keys() >= UNWRAPPED
    return [pytest.param(found[name], id=name) for name in sorted(found.keys() - UNWRAPPED)]


@pytest.mark.parametrize("function", [*functions_with_settings(), *methods_with_settings()])
def test_every_public_function_names_the_nearest_setting(function):
    meant = max(settings_of(function), key=len)
    with pytest.raises(
        sw.StopwiseError, match=f"unknown setting '{meant}z'; did you mean '{meant}'"
    ):
        function(**{f"{meant}z": 1})
