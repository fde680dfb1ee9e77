"""On-demand clusters: their objects, their states, and the polling of their frameworks."""
