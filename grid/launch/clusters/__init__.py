"""On-demand clusters: their objects, the way through their states, and what is asked of their frameworks."""
