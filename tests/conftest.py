"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# A busy machine makes examples slow, not wrong: how long one takes is not what is tested here.
settings.register_profile("tidegate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidegate")
