"""The layout: every module imports only from those above it; no way around the style; docs name what exists."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ_THE_CODE = (ROOT / "README.md").read_text().split("## Read the code")[1].split("\n## ")[0]
ORDER = tuple(re.findall(r"\]\((\w+)\.py\)", READ_THE_CODE))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_module_is_in_the_order_of_the_readme():
    assert {p.stem for p in ROOT.glob("*.py")} == set(ORDER)


@pytest.mark.parametrize("module", ORDER)
def test_a_module_imports_only_from_those_above_it(module):
    above = set(ORDER[: ORDER.index(module)])
    own = {name for name in imports(ROOT / f"{module}.py") if name in ORDER}
    assert own <= above, own - above


def test_every_module_of_the_phrasebook_is_in_the_fingerprint_of_its_pairs():
    behind = {"phrasebook"}
    for module in reversed(ORDER):
        if module in behind:
            behind |= set(imports(ROOT / f"{module}.py")) & set(ORDER)
    behind -= {"strict_json", "command_line", "runtime"}  # what its command needs makes no pairs
    grammar = re.search(r"^GRAMMAR = \((.*)\)$", (ROOT / "origins.py").read_text(), re.M)
    assert set(grammar[1].split(", ")) == behind


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
        assert not re.search(
            r"(?<!\w)(?<!safetensors\.)torch\.load|pickle\.load|(?<!safetensors\.)torch\.save|(?<![.\w])(eval|exec)\(",
            text,
        ), module


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in ROOT.glob("docs/*.md"))]
)
def test_links_in_documents_lead_somewhere(document):
    path = ROOT / document if (ROOT / document).exists() else ROOT / "docs" / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{document}: {target}"


def test_every_fault_that_users_of_other_systems_met_has_its_test():
    # 1 NaN from masked rows, 2 batch size, 3 future, 4 masks of inference, 5 half precision, 6 position table,
    # 7 blank lines, 8 empty output, 9 characters, 10 digits, 11 spaces, 12 BLEU, 13 columns, 14 "null",
    # 15 line separators, 16 resume, 17 pickles, 18 loss under padding, 19 stop rule, 20 ranks, 21 newest by name,
    # 22 splits, 23 "1984", 24 long rows
    text = "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))
    marked = {int(number) for number in re.findall(r"# fault (\d+)", text)}
    assert marked == set(range(1, 25))


@pytest.mark.parametrize("document", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_no_document_waits_for_a_result(document):
    assert not re.search("RESULT|TODO|TBD", (ROOT / document).read_text())
