"""What should move?"""
