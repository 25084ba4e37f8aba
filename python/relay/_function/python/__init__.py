"""Python's own functions, `math` and the methods of its containers."""
