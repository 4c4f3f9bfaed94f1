"""Which pods a job needs now?"""
