"""Models that learn from the text as it goes by: each event is scored before it is learned. May import what `models` may."""
