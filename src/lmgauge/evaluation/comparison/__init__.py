"""Runs side by side: may they be compared, is the difference real. May import `slicing` and the modules of `evaluation`."""
