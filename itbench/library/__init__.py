"""Finds, loads and lints scenarios, faults, apps and metric cards; used by run, stage and cli."""
