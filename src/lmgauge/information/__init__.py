"""Entropy, divergences and mutual information of given distributions. May import `numerics` and `errors`."""
