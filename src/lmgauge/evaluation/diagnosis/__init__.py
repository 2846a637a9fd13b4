"""Where one model fails. May import `slicing` and the modules of `evaluation`."""
