"""The app in a real browser: one server and one Chromium a session, a fresh context a page."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SERVER_START_SECONDS = 30.0
IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
TRACEBACK = '[data-testid="stException"]'


def _find_chromium() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
            return bool(answer.read() == b"ok")
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser; without one the test is skipped, or fails where CI is set."""
    found = _find_chromium()
    if found is None:
        message = "no Chromium found: install it, or name it in the variable CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def base_url(chromium: str) -> Iterator[str]:
    """The address of a server of this session's own, without a slash at the end."""
    port = _free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    options = {
        "server.address": "127.0.0.1",
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
    }
    for name, value in options.items():
        command += [f"--{name}", value]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + SERVER_START_SECONDS
            while not _is_healthy(address):
                if server.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    pytest.fail(f"the server did not start:\n{log.read().decode()}")
                time.sleep(0.05)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    """One headless Chromium for the session."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield running
        running.close()


@pytest.fixture
def new_page(browser: Browser, base_url: str) -> Iterator[Callable[..., Page]]:
    """Make pages, each in a context (a visitor) of its own: `new_page(width, height, dark)`."""
    contexts = []

    def make(width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        context = browser.new_context(
            base_url=base_url,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            locale="en-GB",
            timezone_id="UTC",
            reduced_motion="reduce",
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page: Callable[..., Page]) -> Page:
    """A fresh visitor with a desktop window in the light theme."""
    return new_page()


@pytest.fixture(scope="session")
def settle() -> Callable[[Page], None]:
    """Wait until the script of the page has run and its title is there; fail on a traceback."""

    def wait(page: Page) -> None:
        page.wait_for_selector(f"{IDLE} h1, {IDLE} {TRACEBACK}")
        for shown in page.locator(TRACEBACK).all_inner_texts():
            pytest.fail(f"{page.url} shows a traceback:\n{shown}")

    return wait


@pytest.fixture(scope="session")
def axe_source() -> str:
    """The script of axe-core, to be run in a page before `axe.run()`."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
