"""The documents on disk as frozen models; errors name file, line, field, value seen and value expected."""
