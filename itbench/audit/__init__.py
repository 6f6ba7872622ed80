"""The compliance checks on people's own estates, without an agent."""
