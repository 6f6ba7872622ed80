"""Server-side tables."""
