"""NumPy's functions, made of operators."""
