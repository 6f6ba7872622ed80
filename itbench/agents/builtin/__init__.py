"""Agents that come with itbench and run in the trial's own process: baselines, known answers, and mutation tests."""
