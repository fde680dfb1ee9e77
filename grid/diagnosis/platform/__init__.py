"""Whether what the platform consists of and depends on works: pure rules of what the controller has read."""
