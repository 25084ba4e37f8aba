"""Functions that make calls of operators, and the registration of users' operators."""
