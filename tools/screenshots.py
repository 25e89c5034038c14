"""Pictures of the documentation site's pages in a real browser, and what a reader would miss in them.

    python tools/screenshots.py dist/site dist/screenshots

It needs Playwright and a Chromium on PATH (`chromium`, `google-chrome`), which it names if there is none.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (1280, 390)  # a desk and a telephone
# Pages of at most so many pixels are in their picture as a whole, such as the outputs of a notebook; of others the top.
WHOLE = 8_000
# Pages that are looked at, with what has to be seen there.
PAGES = {
    "index.html": "Apache Hudi tables from Python",
    "tutorial.html": "CommitResult(upsert",
    "guide/migration.html": "CALL show_commits",
    "reference/options.html": "hoodie.cleaner.commits.retained",
    "reference/hudi_timeline.html": "read_incremental",
    "reference/command-line.html": "hudi compact run",
    "errors/index.html": "HUDI-E0401",
    "errors/HUDI-E0401.html": "What to do",
    "notebooks/first-day.html": "inserted",
    "notebooks/questions.html": "mean fare",
    "packages/hudi-timeline.html": "What is in an Apache Hudi table",
}


def browser() -> str:
    """The path of a Chromium.

    Raises:
        FileNotFoundError: there is none; says how to have one.
    """
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError(
        f"none of {', '.join(BROWSERS)} is on PATH; `apt-get install chromium` brings one"
    )


def faults_of(page: Any, address: str, wanted: str) -> list[str]:
    """What is wrong with a page that is open: text that is not seen, pictures that are not there, a page too wide."""
    found = []
    text = page.locator("article").inner_text()
    if wanted not in text:
        found.append(f"{address}: {wanted!r} is not to be seen")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 1:
        found.append(f"{address}: {wide} pixels too wide for its window")
    broken = page.evaluate("[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)")
    return [*found, *(f"{address}: the picture {b} is not there" for b in broken)]


class _Pages(SimpleHTTPRequestHandler):
    """The site's files, without a line for each request."""

    def log_message(self, format: str, *arguments: object) -> None: ...


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a server of the site, on this machine alone; scripts of pages need one for the search."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def take(site: Path, out: Path) -> list[str]:
    """Take the pictures; gives the faults."""
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    found: list[str] = []
    with served(site) as address, sync_playwright() as playwright:
        # Chromium has no sandbox for root, as in most containers; only pages of our own are opened.
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=browser(), args=root)
        for width in WIDTHS:
            page = chromium.new_page(viewport={"width": width, "height": 900})
            page.on("pageerror", partial(_note_script, found))
            page.on("response", partial(_note_response, address, found))
            page.on("request", partial(_note_request, address, found))
            for name, wanted in PAGES.items():
                page.goto(address + name, wait_until="networkidle")
                found += faults_of(page, f"{name} at {width}", wanted)
                whole = page.evaluate("document.documentElement.scrollHeight") <= WHOLE
                page.screenshot(path=str(out / f"{name.replace('/', '-')[:-5]}-{width}.png"), full_page=whole)
            page.close()
        chromium.close()
    return list(dict.fromkeys(found))


def _note_script(found: list[str], error: object) -> None:
    found.append(f"script: {error}")


def _note_response(address: str, found: list[str], response: Any) -> None:
    if response.url.startswith(address) and response.status >= 400:
        found.append(f"{response.url.removeprefix(address)}: {response.status}")


def _note_request(address: str, found: list[str], request: Any) -> None:
    if not request.url.startswith((address, "data:", "blob:", "about:")):
        found.append(f"{request.url} is fetched from elsewhere")


def main(arguments: list[str]) -> int:
    site, out = map(Path, arguments)
    found = take(site, out)
    print(
        "\n".join(found)
        or f"{len(PAGES)} pages at {len(WIDTHS)} widths: nothing is missing; pictures in {out}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
