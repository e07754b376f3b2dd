"""Random typed programs: drawn, evaluated in NumPy, run by the library.  tests/random_programs.py is the program."""
