"""Sizes by what users should feel: how long requests wait or take, where replicas take their time to start."""
