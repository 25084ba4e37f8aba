"""Passes, their context and instruments; `relay.transform` offers them."""
