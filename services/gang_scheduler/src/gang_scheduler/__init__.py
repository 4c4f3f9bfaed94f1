"""Where, and at whose cost?"""
