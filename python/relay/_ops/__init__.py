"""What makes calls of operators, and the registry of users' operators."""
