"""Judges policies and network rules on fixtures that the agent never saw."""
