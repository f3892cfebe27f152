"""Write the pictures of the service's tutorial: the example is started, and a browser looks at it.

Run it after a change of the pages: `python scripts/make_service_pictures.py`. Needs chromium. The
tests take the same pictures of a shorter example and hold them against those of the tutorial.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path

from playwright.async_api import Page, async_playwright

from stopwise.service.core import Service
from stopwise.service.example.running import run_example

PICTURES = Path(__file__).parents[1] / "docs" / "service" / "pictures"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
SEEN = {  # picture: path of the page, how many of its cards from the top
    "cascade": ("/ui/c/language", 2),
    "labels": ("/ui/c/language/labels", 2),
    "truth": ("/ui/", 2),
}
LONGEST = 220_000
"""Bytes of a picture."""


def browser_path() -> str:
    """The browser of this machine."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise SystemExit("install chromium first: scripts/need_browser.sh does, or says how")
    return found


async def take(page: Page, url: str, name: str, folder: Path) -> None:
    """One picture: the page down to the end of a card."""
    path, cards = SEEN[name]
    await page.goto(url + path)
    box = await page.locator("section.card, article.card").nth(cards - 1).bounding_box()
    assert box is not None, f"{path} has fewer than {cards} cards"
    clip = {"x": 0.0, "y": 0.0, "width": 960.0, "height": box["y"] + box["height"] + 16}
    file = folder / f"{name}.png"
    await page.screenshot(path=file, full_page=True, clip=clip)  # type: ignore[arg-type]
    size = file.stat().st_size
    assert size < LONGEST, f"{file.name} has {size:,} bytes"


async def make_pictures(folder: Path) -> None:
    """Start the example, wait for the truth, look; the pictures go into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{one.getsockname()[1]}"
    ready, stop = asyncio.Event(), asyncio.Event()
    started: list[Service] = []

    def on_ready(service: Service) -> None:
        started.append(service)
        ready.set()

    running = asyncio.create_task(run_example(listen, pace=200.0, on_ready=on_ready, stop=stop))
    try:
        async with asyncio.timeout(300), async_playwright() as playwright:
            await ready.wait()
            example = started[0].example
            assert example is not None
            while example.truth is None:
                await asyncio.sleep(0.1)
            browser = await playwright.chromium.launch(executable_path=browser_path(), args=FLAGS)
            page = await browser.new_page(viewport={"width": 960, "height": 700})
            for name in SEEN:
                await take(page, f"http://{listen}", name, folder)
            await browser.close()
    finally:
        stop.set()
        await running


if __name__ == "__main__":
    asyncio.run(make_pictures(PICTURES))
    for made in sorted(PICTURES.glob("*.png")):
        print(f"{made.name}: {made.stat().st_size:,} bytes")
