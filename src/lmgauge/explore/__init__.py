"""The explorer: a local server, read only, for what does not fit a page.

Its modules are imported only by its command, and may import what `cli` may, and the libraries of the extra `explore`.
"""
