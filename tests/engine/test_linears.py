"""The user's Linear layers while a step runs, and afterwards."""

from __future__ import annotations

import pytest
import torch

from nbsglang.engine.linears import Linears

CPU = torch.device("cpu")


def net() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def test_layers_are_swapped_and_given_back_also_after_an_error():
    module = net()
    linears = Linears(module, CPU)
    assert len(linears) == 2
    x = torch.randn(3, 4)
    expected = module(x)
    with torch.inference_mode(), linears.swapped():
        assert "forward" in module[0].__dict__
        assert torch.allclose(module(x), expected, atol=1e-6)
    assert not any("forward" in part.__dict__ for part in module)
    with pytest.raises(ValueError, match="x"), linears.swapped():
        raise ValueError("x")
    assert not any("forward" in part.__dict__ for part in module)


def test_a_change_of_the_weights_is_seen():
    module = net()
    linears = Linears(module, CPU)
    with torch.no_grad():
        module[0].weight.zero_()
        module[2].bias = torch.nn.Parameter(torch.ones(2))
    x = torch.randn(3, 4)
    expected = module(x)
    with torch.inference_mode(), linears.swapped():
        assert torch.allclose(module(x), expected, atol=1e-6)


def test_wrapped_and_special_layers_are_left_alone():
    class Special(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    module = torch.nn.Sequential(Special(4, 4), torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    module[1].forward = lambda x: x
    linears = Linears(module, CPU)
    assert len(linears) == 1
    mine = module[2].forward
    module[2].forward = lambda x: mine(x) * 2  # wrapped after the engine was opened
    x = torch.randn(3, 4)
    expected = module(x)
    with torch.inference_mode(), linears.swapped():
        assert torch.equal(module(x), expected)
    assert "forward" in module[1].__dict__
    assert "forward" in module[2].__dict__


def test_another_devices_layers_are_left_alone():
    assert len(Linears(net(), torch.device("cuda"))) == 0


def test_a_layer_that_is_trained_meanwhile_has_its_gradient():
    module = net()
    with Linears(module, CPU).swapped():
        module(torch.randn(3, 4)).sum().backward()
    assert module[0].weight.grad is not None
