"""hummingbird-ml, a package of others, runs its TVM backend on `relay.tvm` unmodified.

Its release refuses the versions of ONNX that this project tests with, so it is installed by hand:

    pip install --no-deps hummingbird-ml==0.4.12 onnxconverter-common dill psutil

The tests are skipped without it. Its own tests of the backend run with a `conftest.py` of two lines:

    import relay.tvm
    relay.tvm.install()

and `pytest tests -k tvm` in its repository, with lightgbm 4.7 and xgboost 1.7. With current releases of
scikit-learn, test_simple_imputer_nan_to_0_tvm and test_standard_scaler_floats_tvm_true_false fail, as the
same tests of its PyTorch backend do.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("hummingbird", reason="hummingbird-ml is not installed (see this file)")
pytest.importorskip("sklearn")

# A process of its own: `tvm` stays out of the other tests' sys.modules.
HEAD = """
import warnings
warnings.filterwarnings("ignore")
import numpy as np, relay.tvm
relay.tvm.install()
import hummingbird.ml
rng = np.random.default_rng(0)
x = rng.random((40, 6), "float32")
y = rng.integers(3, size=40)

def check(model, method="predict", **options):
    model.fit(x, y)
    converted = hummingbird.ml.convert(model, "tvm", x, extra_config=options)
    want, got = getattr(model, method)(x), getattr(converted, method)(x)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return converted, got
"""

SHORT = """
from sklearn.ensemble import RandomForestClassifier
forest = RandomForestClassifier(n_estimators=4, max_depth=3, random_state=0)
converted, got = check(forest, "predict_proba", tree_implementation="gemm")
digest = converted.save(FOLDER + "/forest")
loaded = hummingbird.ml.load(FOLDER + "/forest", digest=digest)
np.testing.assert_array_equal(loaded.predict_proba(x), got)
"""

LONG = """
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    ExtraTreesRegressor, GradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
for tree in ("gemm", "tree_trav", "perf_tree_trav"):
    check(DecisionTreeClassifier(max_depth=4, random_state=0), "predict_proba", tree_implementation=tree)
    check(ExtraTreesRegressor(3, max_depth=4, random_state=0), tree_implementation=tree)
for model in (
    GradientBoostingClassifier(n_estimators=5), HistGradientBoostingRegressor(max_iter=5),
    LinearRegression(), LogisticRegression(), SGDClassifier(random_state=0), BernoulliNB(binarize=0.5),
    GaussianNB(), MLPClassifier(max_iter=20, random_state=0), MLPRegressor(max_iter=20, random_state=0),
    LinearSVC(), SVC(), KMeans(3, n_init=1, random_state=0),
):
    check(model)
check(IsolationForest(n_estimators=5, random_state=0), "decision_function")
for scaler in (MaxAbsScaler(), MinMaxScaler(), Normalizer(), RobustScaler(), StandardScaler()):
    check(scaler, "transform")
"""


def run(text, folder):
    code = f"{HEAD}FOLDER = {str(folder)!r}\n{text}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_forest_is_compiled_saved_and_loaded(tmp_path):
    run(SHORT, tmp_path)


@pytest.mark.slow
def test_models_of_many_kinds(tmp_path):
    run(LONG, tmp_path)
