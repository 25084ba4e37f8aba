"""Models of scikit-learn as skl2onnx exports them, against ONNX Runtime; skipped where these packages
are not installed."""

import numpy as np
import onnxruntime
import pytest

import relay

sklearn = pytest.importorskip("sklearn")
skl2onnx = pytest.importorskip("skl2onnx")
pytestmark = pytest.mark.slow

# Estimators by name: module, class, arguments. Those of the first group have classes.
CLASSIFIERS = {
    "decision tree": ("tree", "DecisionTreeClassifier", {}),
    "random forest": ("ensemble", "RandomForestClassifier", {"n_estimators": 20}),
    "extra trees": ("ensemble", "ExtraTreesClassifier", {"n_estimators": 20}),
    "gradient boosting": ("ensemble", "GradientBoostingClassifier", {"n_estimators": 20}),
    "ada boost": ("ensemble", "AdaBoostClassifier", {"n_estimators": 10}),
    "bagging": ("ensemble", "BaggingClassifier", {"n_estimators": 5}),
    "logistic regression": ("linear_model", "LogisticRegression", {}),
    "stochastic gradient": ("linear_model", "SGDClassifier", {}),
    "support vectors": ("svm", "SVC", {}),
    "naive bayes": ("naive_bayes", "GaussianNB", {}),
    "neighbours": ("neighbors", "KNeighborsClassifier", {}),
    "discriminants": ("discriminant_analysis", "LinearDiscriminantAnalysis", {}),
    "perceptron": ("neural_network", "MLPClassifier", {"max_iter": 50}),
}
OTHERS = {
    "linear": ("linear_model", "LinearRegression", {}),
    "forest of regressions": ("ensemble", "RandomForestRegressor", {"n_estimators": 20}),
    "boosted regressions": ("ensemble", "AdaBoostRegressor", {"n_estimators": 10}),
    "regression tree": ("tree", "DecisionTreeRegressor", {}),
    "support vector regression": ("svm", "SVR", {}),
    "one class": ("svm", "OneClassSVM", {}),
    "isolation forest": ("ensemble", "IsolationForest", {"n_estimators": 10}),
    "neighbours of numbers": ("neighbors", "KNeighborsRegressor", {}),
    "means": ("cluster", "KMeans", {"n_clusters": 3}),
    "principal components": ("decomposition", "PCA", {"n_components": 3}),
    "scaler": ("preprocessing", "StandardScaler", {}),
    "normaliser": ("preprocessing", "Normalizer", {}),
    "polynomials": ("preprocessing", "PolynomialFeatures", {}),
    "imputer": ("impute", "SimpleImputer", {}),
}


def estimator(module, name, arguments):
    import importlib

    return getattr(importlib.import_module(f"sklearn.{module}"), name)(**arguments)


def agree(fitted, x, options):
    proto = skl2onnx.convert_sklearn(
        fitted,
        initial_types=[("X", skl2onnx.common.data_types.FloatTensorType([None, x.shape[1]]))],
        options={id(fitted): options} if options else None,
        target_opset={"": 18, "ai.onnx.ml": 3},
    ).SerializeToString()
    want = onnxruntime.InferenceSession(proto).run(None, {"X": x})
    mod, params = relay.frontend.from_onnx(proto)
    got = relay.build(mod, params=params)(x)
    got = got if isinstance(got, tuple) else [got]
    for g, w in zip(got, want, strict=True):
        if isinstance(w, list):  # of records
            assert [k.tolist() for k, _ in g] == [list(record) for record in w]
            g, w = np.array([v for _, v in g]), np.array([list(r.values()) for r in w])
        if w.dtype.kind == "f":
            np.testing.assert_allclose(g, w, 1e-4, 1e-5 * max(1.0, np.abs(w).max()))
        else:
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("zipmap", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, classes, zipmap):
    from sklearn.datasets import make_classification

    x, y = make_classification(300, 10, n_informative=6, n_classes=classes, random_state=0)
    fitted = estimator(*CLASSIFIERS[name]).fit(x.astype("float32"), y)
    agree(fitted, x[:50].astype("float32"), {"zipmap": zipmap})


@pytest.mark.parametrize("name", OTHERS)
def test_regressors_and_transformers(name):
    from sklearn.datasets import make_regression

    x, y = make_regression(300, 10, random_state=0)
    x = x.astype("float32")
    agree(estimator(*OTHERS[name]).fit(x, y), x[:50], None)


def test_words_of_a_column_become_classes():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4)).astype("float32")
    labels = np.array(["low", "mid", "high"])[np.digitize(x.sum(1), [-1, 1])]
    for zipmap in (False, True):
        agree(LogisticRegression().fit(x, labels), x[:20], {"zipmap": zipmap})
