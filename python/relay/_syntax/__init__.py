"""The text format as editors see it: its tokens, and what each name in a text stands for."""
