"""What a longer context is worth. May import the modules of `evaluation`."""
