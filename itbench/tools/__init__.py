"""What an agent may do: one registry of tools, served in-process and to child processes."""
