"""Do two engines give the same tokens the same log-probabilities? May import the modules of `evaluation`."""
