"""Every compiled function, called by hand: with what real use calls it with, one argument or a few of it changed."""
