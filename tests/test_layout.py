"""The layout: every module imports only from those above it; no way around the style; docs name what exists."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = (
    "config", "runtime", "tokenizer", "lexicon", "phrasebook", "model", "readers", "origins", "corpus", "dataset",
    "decoding", "checkpoint", "picture", "translator", "scores", "evaluate", "reporting", "learner", "train", "translate",
)  # fmt: skip


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_module_is_in_the_order_of_the_design():
    assert {p.stem for p in ROOT.glob("*.py")} == set(ORDER)


@pytest.mark.parametrize("module", ORDER)
def test_a_module_imports_only_from_those_above_it(module):
    above = set(ORDER[: ORDER.index(module)])
    own = {name for name in imports(ROOT / f"{module}.py") if name in ORDER}
    assert own <= above, own - above


def test_the_code_passes_ruff():
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "."], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_passes_mypy():
    files = [f"{name}.py" for name in ORDER]
    done = subprocess.run([sys.executable, "-m", "mypy", *files], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_nothing_unpickles():  # fault 17
    for module in ORDER:
        text = (ROOT / f"{module}.py").read_text()
        assert not re.search(r"torch\.load|pickle\.load|torch\.save|\beval\(|\bexec\(", text), module


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in ROOT.glob("docs/*.md"))]
)
def test_links_in_documents_lead_somewhere(document):
    path = ROOT / document if (ROOT / document).exists() else ROOT / "docs" / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{document}: {target}"
