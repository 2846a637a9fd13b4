"""What all networks share, and the engines that run them. May import what `models` may."""
