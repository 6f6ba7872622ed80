"""Documents, clock, identifiers, errors, statistics: pure, no I/O, no third-party clients; everything else builds on it."""
