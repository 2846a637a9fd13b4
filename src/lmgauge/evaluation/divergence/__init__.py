"""How far two models are apart. May import the modules of `evaluation`."""
