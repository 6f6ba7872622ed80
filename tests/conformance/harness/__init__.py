"""Runs the conformance corpus against a cluster and compares the answers with those of a real one."""
