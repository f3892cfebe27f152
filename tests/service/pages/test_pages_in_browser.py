"""The pages in a real browser: nothing is blocked, nothing runs that should not, keys suffice."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_upstream import FakeUpstream
from playwright.sync_api import Browser, Page, sync_playwright

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
PATHS = ("", "/savings", "/disagreements", "/labels", "/health", "/mode")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    assert found, "install chromium first: scripts/need_browser.sh does, or says how"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield opened
        opened.close()


def ask(url: str, text: str, name: str = "support") -> None:
    body = {"model": name, "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=20).read()


@pytest.fixture(scope="module")
def url(shared_live: Callable[..., Any], shared_upstream: FakeUpstream) -> str:
    """A service whose two models differ on every second of twenty requests."""

    def answer(model: str, body: dict[str, Any]) -> str:
        number = int(body["messages"][-1]["content"].split()[-1])
        return EVIL if model == "small" and number % 2 else "fine"

    shared_upstream.answer = answer
    server = shared_live(mode="shadow", sample=1.0, mistake_cost=0.01, server={"keep": "all"})
    for number in range(20):
        ask(server.url, f"{EVIL} {number}")
    return str(server.url)


def watched(browser: Browser, **settings: Any) -> tuple[Page, list[str]]:
    page = browser.new_page(**settings)
    problems: list[str] = []
    page.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: problems.append(str(error)))
    return page, problems


def test_every_page_opens_without_a_complaint_of_the_browser(browser: Browser, url: str) -> None:
    for settings in (
        {"viewport": {"width": 1200, "height": 800}},
        {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"},
    ):
        page, problems = watched(browser, **settings)
        for path in ("/ui/", *(f"/ui/c/support{tab}" for tab in PATHS), "/ui/keys"):
            page.goto(url + path)
            assert page.title() not in ("1", "2"), path
            assert page.locator("h1").count() == 1
            # nothing wider than the screen: no sideways scrolling of the whole page on a phone
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        assert problems == []
        page.close()


def test_the_longest_names_fit_on_a_phone(
    browser: Browser, live: Callable[..., Any], upstream: FakeUpstream
) -> None:
    name, models = "c" * 100, [f"{start}_{'long' * 22}" for start in ("small", "large")]
    upstream.answer = lambda model, body: model
    server = live(models=models, name=name, mode="shadow", sample=1.0, server={"keep": "all"})
    for number in range(3):
        ask(server.url, str(number), name)
    assert server.service.recorder.drain()
    for width in (375, 1200):
        page, problems = watched(browser, viewport={"width": width, "height": 800})
        for path in ("/ui/", *(f"/ui/c/{name}{tab}" for tab in PATHS), "/ui/keys"):
            page.goto(server.url + path)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
            # What is written in a table is on the screen too, not behind a bar to be found.
            hidden = (
                "[...document.querySelectorAll('.wide')].map(e => e.scrollWidth - e.clientWidth)"
            )
            assert max(page.evaluate(hidden), default=0) <= 0, (path, width)
        assert problems == []
        page.close()


def test_the_mode_is_changed_with_the_keyboard_alone(browser: Browser, url: str) -> None:
    page, problems = watched(browser)
    page.goto(f"{url}/ui/c/support/mode")
    page.focus("input[name=mode]:checked")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=by keyboard")
    assert page.inner_text("h2 .mode") == "enforce"
    page.click("text=Back to shadow")
    page.wait_for_selector("text=back to shadow")
    assert page.inner_text("h2 .mode") == "shadow"
    assert problems == []
    page.close()


def test_labels_are_given_in_the_browser(browser: Browser, url: str) -> None:
    page, problems = watched(browser)
    page.goto(f"{url}/ui/c/support/labels")
    assert "0 labels given" in page.inner_text("main")
    page.locator("label.choice", has_text="fine").first.click()
    page.click("text=Keep and show the next")
    page.wait_for_selector("text=1 label given")
    # From here on without a mouse, until the audit is settled: the first answer has the focus.
    for number in range(2, 12):
        if "settled" in page.inner_text("main"):
            break
        assert page.evaluate("document.activeElement.name") == "right"
        answers = page.locator("label.choice").all_inner_texts()
        page.keyboard.press("Space")
        for _ in range(answers.index("fine")):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator("p.sentence", has_text=f"{number} labels").wait_for()
    assert "Stop at large: settled after" in page.inner_text("main")
    assert problems == []
    page.close()


def test_the_overview_renews_itself(browser: Browser, url: str) -> None:
    page, problems = watched(browser)
    page.clock.install()  # its five seconds pass when we say so
    page.goto(f"{url}/ui/c/support")
    before = page.inner_text(".verdict")
    for number in range(5):
        ask(url, f"once more {2 * number}")
    for _ in range(100):  # what was asked is written a moment later
        page.clock.run_for(5_000)
        if page.inner_text(".verdict") != before:
            break
    assert page.inner_text(".verdict") != before
    assert problems == []
    page.close()
