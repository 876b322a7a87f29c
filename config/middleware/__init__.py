"""Django's middleware of the whole site: each a module, or a class of one."""
