"""Transactional no-regression around whatever acts."""
