"""Stands estates up and breaks them: ansible-runner and the environments."""
