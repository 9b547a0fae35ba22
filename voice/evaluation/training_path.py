"""Imported first by the tools of this folder: lets them import the modules of ../training."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))
