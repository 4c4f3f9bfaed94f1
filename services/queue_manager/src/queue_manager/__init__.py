"""Who may compete, and how much each queue deserves?"""
