"""Whether a model has seen texts in training. May import the modules of `evaluation`."""
