"""Runs every benchmark module that has `main()`, or those named."""

import importlib
import pkgutil
import sys

import benchmarks


def main(names: list[str]) -> int:
    """Run and print; 2 when a name is no benchmark."""
    known = sorted(
        module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")
    )
    for name in names or known:
        if name not in known:
            print(f"no such benchmark: {name!r}; expected one of {', '.join(known)}", file=sys.stderr)
            return 2
        print(f"== {name}", flush=True)
        sys.argv = [f"benchmarks.{name}"]  # its options keep their defaults; the words of this command are not for it
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
