"""Functions in Python: their source is read, never traced.

@relay.function            function.py: calls, compiled forms; derived.py: derivatives and batches of one
  program.py               the functions of a program, for the types they are called with
    reading/               one function: statements, expressions, calls, loops, matches
      reading/outcome.py   the ways through it, and how they join
  numpy/, python/          what is here of NumPy, and of Python's own functions, math and containers
    numpy/catalogue.py     what is here by NumPy's names, and what is not
  values.py                what names stand for, and the types of that
    operations/            arithmetic, arrays and indices of it
  syntax/                  source text, syntax tree, errors that point into it
"""
