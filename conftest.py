"""Settings that all tests share."""

from hypothesis import HealthCheck, settings

# Timings of a shared machine say nothing about the code.
settings.register_profile("hudi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hudi")
