"""The rules that hold the code base together, checked by reading its files."""

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
ENGINE = sorted((ROOT / "engine").rglob("*.py"))
PAGES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))]
PYTHON = [*ENGINE, ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=_name(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


def _calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """Every call of the form `<name>.<function>(...)` or `<function>(...)`."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.func.attr, node
            elif isinstance(node.func, ast.Name):
                yield node.func.id, node


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _locked() -> dict[str, list[str]]:
    """The pinned versions of the lock by package."""
    pins: dict[str, list[str]] = {}
    for line in _lines(ROOT / "requirements.lock"):
        if found := re.match(r"([A-Za-z0-9_.-]+)==(\S+)", line):
            pins.setdefault(found[1].lower().replace("_", "-"), []).append(found[2])
    return pins


@pytest.mark.parametrize("path", ENGINE, ids=_name)
def test_the_engine_knows_nothing_of_the_pages(path: Path) -> None:
    forbidden = {"streamlit", "pages", "app"}
    assert [name for name in _imports(path) if name.split(".")[0] in forbidden] == []


@pytest.mark.parametrize("path", ENGINE, ids=_name)
def test_a_module_of_the_engine_says_what_it_is_for(path: Path) -> None:
    tree = _tree(path)
    assert not tree.body or ast.get_docstring(tree), "the module has no docstring"


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_a_link_between_pages_carries_the_plan(path: Path) -> None:
    bare = [
        f"line {call.lineno}: {name}"
        for name, call in _calls(path)
        if name in ("page_link", "switch_page")
        and "query_params" not in {keyword.arg for keyword in call.keywords}
    ]
    assert bare == [], "a link without query_params clears the address, and the plan with it"


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_no_html_of_our_own_is_let_through(path: Path) -> None:
    unsafe = [
        f"line {call.lineno}"
        for _, call in _calls(path)
        if "unsafe_allow_html" in {keyword.arg for keyword in call.keywords}
    ]
    assert unsafe == []


@pytest.mark.parametrize("path", PYTHON, ids=_name)
def test_no_button_is_primary(path: Path) -> None:
    primary = [
        f"line {call.lineno}: {name}"
        for name, call in _calls(path)
        for keyword in call.keywords
        if keyword.arg == "type"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value == "primary"
    ]
    assert primary == [], "white on the primary colour of the dark theme is below 4.5:1"


def test_the_lock_names_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text


def test_every_package_of_the_lock_has_a_hash() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    requirements = [line for line in text.splitlines() if line.strip()]
    assert [line[:60] for line in requirements if "--hash=sha256:" not in line] == []


def test_the_lock_holds_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    pins = _locked()
    for text in asked:
        requirement = Requirement(text)
        versions = pins.get(requirement.name.lower(), [])
        assert versions, f"{requirement.name} is not in requirements.lock"
        assert all(requirement.specifier.contains(version) for version in versions), text


def test_the_hosted_app_installs_the_same_lock() -> None:
    assert _lines(ROOT / "requirements.txt") == ["-r requirements.lock"]


def test_the_readme_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^\s*make run\s*$", text, re.MULTILINE)
    assert re.search(r"^\s*make test\s*$", text, re.MULTILINE)


def test_ci_run_can_be_started() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_app_asks_no_other_host() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["browser"]["gatherUsageStats"] is False
    assert config["browser"]["serverAddress"]
    assert config["server"]["address"] == "127.0.0.1"
    for face in config["theme"]["fontFaces"]:
        assert "://" not in face["url"]
        assert (ROOT / face["url"].removeprefix("app/")).is_file()


def test_fonts_come_with_their_licence() -> None:
    for folder in (ROOT / "data" / "fonts", ROOT / "static"):
        assert "SIL OPEN FONT LICENSE" in (folder / "OFL.txt").read_text(encoding="utf-8")
