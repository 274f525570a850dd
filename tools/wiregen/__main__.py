"""`python -m tools.wiregen`: deletes and writes all generated modules."""

from tools.wiregen.modules import GENERATED, generate

if __name__ == "__main__":
    for old in GENERATED.glob("*.py"):
        old.unlink()
    generate(GENERATED)
