"""The recurrent layer of torch_twin.py: a saved twin refers to it, and is loaded where there is no onnx."""

import torch


def lstm(x: torch.Tensor, weights: list[torch.Tensor], hidden: int) -> tuple[torch.Tensor, ...]:
    """Returns ONNX's Y, Y_h and Y_c of a layer in one direction that starts with zeros."""
    zeros = x.new_zeros(1, x.shape[1], hidden)
    y, h, c = torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, False, False, False)
    return y.unsqueeze(1), h, c
