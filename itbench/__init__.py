"""itbench: finds out whether an AI agent can be trusted with production IT."""

__version__ = "0.1.0"
