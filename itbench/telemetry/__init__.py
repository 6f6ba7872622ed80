"""Metrics with PromQL, logs, alert rules; fed by the world, read by agents and graders."""
