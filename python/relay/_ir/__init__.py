"""Expressions, types and patterns: visitors, how they are shown, Python's operators on them."""
