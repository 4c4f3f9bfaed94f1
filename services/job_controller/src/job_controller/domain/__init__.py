"""The pure core: job objects and the world in, decisions out."""
