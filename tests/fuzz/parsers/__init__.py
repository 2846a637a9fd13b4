"""A module for each kind of input: `prepare(folder)` makes what its inputs begin with and returns the attempt."""
