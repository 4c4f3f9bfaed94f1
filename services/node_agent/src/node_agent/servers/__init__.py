"""Small servers and launchers that run in environments of their own: none of this is imported by the agent."""
