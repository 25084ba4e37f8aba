"""Expressions, types and modules in Python: visitors, display, operators, names of the first Relay."""
