from hypothesis import settings

# A deadline measures the machine, not the code.
settings.register_profile("holdpoint", deadline=None)
settings.load_profile("holdpoint")
