"""relay.testing: the networks are those of their papers, and run."""

from __future__ import annotations

import math

import numpy as np
import pytest

import relay
from relay import analysis, testing

# Millions of multiplications and of weights, as the papers and their best-known implementations say.
NETWORKS = {
    "resnet 18": (lambda: testing.resnet.get_net(1, 1000, 18), 1814, 11.69),
    "resnet 50": (lambda: testing.resnet.get_net(1, 1000, 50), 4089, 25.56),
    "resnet 20": (lambda: testing.resnet.get_net(1, 10, 20, (3, 32, 32)), 40.9, 0.27),
    "mobilenet": (lambda: testing.mobilenet.get_net(), 569, 4.23),
    "vgg 16": (lambda: testing.vgg.get_net(1, num_layers=16), 15470, 138.36),
    "squeezenet 1.0": (lambda: testing.squeezenet.get_net(1), 819, 1.25),
    "squeezenet 1.1": (lambda: testing.squeezenet.get_net(1, version="1.1"), 349, 1.24),
    "densenet 121": (lambda: testing.densenet.get_net(121, 1000, 1), 2834, 7.98),
    "inception v3": (
        lambda: testing.inception_v3.get_net(1, 1000, (3, 299, 299), "float32"),
        5713,
        23.83,
    ),
    "dqn": (lambda: testing.dqn.get_net(1), 9.4, 1.69),
    "mlp": (lambda: testing.mlp.get_net(1), 0.109, 0.109),
    "dcgan": (lambda: testing.dcgan.get_net(1), 1637.4, 12.66),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_sizes(name):
    make, macs, weights = NETWORKS[name]
    mod = relay.IRModule.from_expr(make())
    params = mod["main"].params
    assert params[0].name_hint == "data"
    moments = ("moving_mean", "moving_var")
    found = sum(
        math.prod(p.checked_type.shape) for p in params[1:] if not p.name_hint.endswith(moments)
    )
    np.testing.assert_allclose(found / 1e6, weights, rtol=0.02)
    np.testing.assert_allclose(analysis.get_total_mac_number(mod) / 1e6, macs, rtol=0.02)


@pytest.mark.parametrize("name", ["mlp", "dqn"])
def test_workloads_run(name):
    network = getattr(testing, name)
    mod, params = network.get_workload(2)
    again = network.get_workload(2)[1]
    assert all(np.array_equal(params[k], again[k]) for k in params)
    exe = relay.build(mod, params=params)
    (slot,) = exe.input_info()
    data = np.random.default_rng(0).standard_normal(slot.shape).astype("float32")
    found = exe(data)
    one = relay.build(*network.get_workload(1)[:1], params=params)
    np.testing.assert_allclose(found[:1], one(data[:1]), rtol=1e-4, atol=1e-5)
    assert np.isfinite(found).all() and found.std() > 0


def test_weights():
    fill = testing.init.Xavier("gaussian", "in", 2)
    array = np.zeros((400, 300), "float32")
    fill("fc_weight", array)
    np.testing.assert_allclose(array.std(), math.sqrt(2 / 300), rtol=0.02)
    fill("bn_gamma", array)
    assert (array == 1).all()
    with pytest.raises(ValueError, match="uniform or gaussian"):
        testing.init.Xavier("normal")
    with pytest.raises(ValueError, match="factor_type"):
        testing.init.Xavier(factor_type="sum")


@pytest.mark.parametrize(
    "make",
    [
        lambda: testing.resnet.get_net(1, 10, 19),
        lambda: testing.resnet.get_net(1, 10, 19, (3, 32, 32)),
        lambda: testing.vgg.get_net(1, num_layers=12),
        lambda: testing.squeezenet.get_net(1, version="2"),
        lambda: testing.dcgan.get_net(1, oshape=(3, 32, 32)),
    ],
)
def test_networks_that_are_not_there(make):
    with pytest.raises(ValueError, match=r"there is|of 64 x 64"):
        make()


def test_helpers():
    x = relay.var("x", shape=(2, 3))
    assert testing.run_infer_type(relay.nn.relu(x)).checked_type.shape == (2, 3)
    folded = testing.run_opt_pass(
        relay.const(1.0) + relay.const(2.0), relay.transform.FoldConstant()
    )
    assert isinstance(folded, relay.Constant)
    assert testing.count_ops(x + x) == {"add": 1}
    with pytest.raises(TypeError, match="is not a pass"):
        testing.run_opt_pass(x, "FoldConstant")
