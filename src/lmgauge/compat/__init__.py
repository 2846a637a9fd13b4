"""Other programs' calls, answered by lmgauge: `import lmgauge.compat.kenlm as kenlm` is all that a project changes.

A module here has the names of the one it stands for and nothing else; imported on first use, it may import `lmgauge.api` and
all that it may. Nothing of ours imports it.
"""
