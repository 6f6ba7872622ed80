"""Adapters for agents of any kind, and the built-in agents."""
