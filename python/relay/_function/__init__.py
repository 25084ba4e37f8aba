"""Functions in Python: their source is read, never traced.

@relay.function            function.py: calls, compiled forms
  program.py               the functions of a program, for the types they are called with
    reader.py              one function: statements.py, expressions.py, calls.py, loops.py,
                           matches.py, derivatives.py, batches.py
      outcome.py           the ways through it, and how they join
      values.py            what names stand for, and the types of that
        arithmetic.py, arrays.py, indexing.py
  numpy_catalogue.py       what is here of NumPy, math and Python's containers, and what is not
    numpy_registry.py      by NumPy's names: numpy_functions.py, numpy_elementwise.py,
                           numpy_statistics.py, numpy_arrangement.py, numpy_search.py,
                           numpy_linear.py; python_functions.py, python_math.py, python_methods.py
"""

from relay._function import numpy_loops as numpy_loops
from relay._function.annotations import Static as Static
from relay._function.annotations import Tensor as Tensor
from relay._function.data import data as data
from relay._function.derived import grad as grad
from relay._function.derived import hessian as hessian
from relay._function.derived import hvp as hvp
from relay._function.derived import jacobian as jacobian
from relay._function.derived import jvp as jvp
from relay._function.derived import value_and_grad as value_and_grad
from relay._function.derived import vjp as vjp
from relay._function.derived import vmap as vmap
from relay._function.function import RelayFunction as RelayFunction
from relay._function.function import function as function
