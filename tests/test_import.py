from __future__ import annotations

import subprocess
import sys

HEAVY = ("scipy", "numba", "sklearn", "matplotlib", "joblib", "polars", "typer", "rich", "pandas")


def loaded_by(code):
    code += "; import sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def test_import_stays_light():
    loaded = loaded_by("import stopwise; stopwise.policy_names(); stopwise.Evidence(2)")
    assert "'numpy'" in loaded
    for name in HEAVY:
        assert f"'{name}'" not in loaded, f"import stopwise loads {name}"


def test_a_problem_without_rates_stays_light():
    code = (
        "import stopwise; p = stopwise.Problem.from_predictions([[0, 1], [1, 1]], [1, 1],"
        " stopwise.Costs.from_cumulative((0, 1))); p.weak_dominance; p.to_json()"
    )
    loaded = loaded_by(code)
    for name in HEAVY:
        assert f"'{name}'" not in loaded


def test_public_names_exist():
    import stopwise

    for name in stopwise.__all__:
        assert getattr(stopwise, name) is not None or name == "ABSTAINED"
