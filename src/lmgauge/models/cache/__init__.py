"""Models that learn from the text as it goes by: each event is scored before it is counted. May import what `models` may."""
