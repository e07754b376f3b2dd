"""Programs import this module to start PyCUDA; here nothing must be started."""
