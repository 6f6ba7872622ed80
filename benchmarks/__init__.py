"""Measurements, not tests: medians of several runs and ratios; `make bench` runs all, `make bench ARGS=flow` one."""
