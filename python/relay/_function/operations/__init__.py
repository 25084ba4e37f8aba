"""Arithmetic, arrays and indices of values: what is done with tensors."""
