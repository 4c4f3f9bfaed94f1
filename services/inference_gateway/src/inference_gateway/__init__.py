"""Which replica answers this request?"""
