"""Run every benchmark of the folder, one after the other, and print what it measured."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main() -> int:
    """Print the figures of each benchmark; one that fails is said and does not stop others."""
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__))
    wanted = sys.argv[1:]
    failed = 0
    for name in names:
        if not name.startswith("bench_") or (wanted and name not in wanted):
            continue
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{getattr(module, 'NAME', name)}")
        try:
            figure = module.run()
            if figure is not None:
                print(f"  median {figure:.1f} ms")
        except Exception as error:
            failed += 1
            print(f"  failed: {error!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
