"""How fast it is: `make bench` runs every `bench_*.py` of this folder and prints its figures."""
