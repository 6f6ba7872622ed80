"""Runs trials: the state machine, its actions, locks, resume, prove."""
