"""A small POSIX-like shell inside modelled containers: exec, init scripts, exec probes. It never touches the host."""
