"""N-gram models over word classes, as SRILM has them. May import what `models` may."""
