"""One function: its statements and expressions become expressions of Relay."""
