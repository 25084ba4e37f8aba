"""The text and the syntax tree of a function, and errors that point into it."""
