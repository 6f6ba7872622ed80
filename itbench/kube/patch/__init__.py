"""The four patch kinds and field ownership: JSON patch, merge patch, strategic merge, server-side apply.

Pure functions over plain objects and schema nodes; the registry calls them.
"""
