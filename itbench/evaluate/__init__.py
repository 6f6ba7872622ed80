"""Evidence -> checks -> metrics: pure functions, one module per domain."""
