"""Template tags of the frame and of every page; each room's own are its `tags`. `grid.settings` gives them their names in templates."""
