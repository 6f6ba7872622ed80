"""Reports for people and machines: HTML, SARIF, OSCAL, ATIF."""
