"""The page in a real headless Chromium: what is seen, that nothing is loaded and nothing fails, with a phone, in the dark, by keyboard alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from big_run import HOSTILE, big_run, hostile_run

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.render.html import render

playwright = pytest.importorskip("playwright.sync_api", reason="no browser driver: pip install playwright")
pytestmark = pytest.mark.integration

PHONE, DESK = 390, 1280
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

CONTRAST = """
(selectors) => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (text) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = text;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const under = (node) => {
    for (let box = node; box; box = box.parentElement) {
      const colour = rgb(getComputedStyle(box).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgb("canvas");
  };
  const found = {};
  for (const selector of selectors) for (const node of document.querySelectorAll(selector)) {
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(under(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found[selector] = Math.min(found[selector] ?? 99, ratio);
  }
  return found;
}
"""
SMALL = """
() => [...document.querySelectorAll("main *")]
  .filter((n) => n.childElementCount === 0 && n.textContent.trim() && n.checkVisibility() && parseFloat(getComputedStyle(n).fontSize) < 10.5)
  .map((n) => n.outerHTML.slice(0, 80))
"""
READ = ["h1", ".word", ".sure", ".meta", "nav a", ".chip", ".card .title", ".facts dt", ".facts dd", ".stack li b", ".stack li i", ".evidence .text",
        ".matrix a.cell", ".host > b", ".lane .words i", ".ticks", ".frames p", ".frames .kind", ".note", "summary", "footer", "button"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """An installed Chromium, or the one of Playwright."""
    installed = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with playwright.sync_playwright() as play:
        if installed is None and not Path(play.chromium.executable_path).exists():
            pytest.skip("no Chromium: apt install chromium, or playwright install chromium")
        running = play.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        yield running
        running.close()


class Open:
    """One page in a window of its own, and all that went wrong in it."""

    def __init__(self, browser: object, path: Path, width: int, scheme: str, script: bool = True) -> None:
        self.trouble: list[str] = []
        self.context = browser.new_context(  # type: ignore[attr-defined]
            viewport={"width": width, "height": 844},
            color_scheme=scheme,
            java_script_enabled=script,
            has_touch=width == PHONE,
            offline=True,
        )
        self.page = self.context.new_page()
        self.page.on("request", lambda r: None if r.url == path.as_uri() or r.url.startswith("data:image/svg") else self.trouble.append(r.url))
        self.page.on("console", lambda m: self.trouble.append(m.text))
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("dialog", lambda d: (self.trouble.append(d.message), d.dismiss()))
        self.page.goto(path.as_uri())


@pytest.fixture
def show(browser: object, tmp_path: Path) -> Iterator[Callable[..., Open]]:
    """Open the page of a snapshot; at the end nothing may have been asked for and nothing may have failed."""
    windows: list[Open] = []

    def opened(snapshot: Snapshot, *, width: int = DESK, scheme: str = "light", script: bool = True) -> Open:
        path = tmp_path / f"report{len(windows)}.html"
        path.write_text(render(diagnose(snapshot), snapshot), "utf-8")
        windows.append(Open(browser, path, width, scheme, script))
        return windows[-1]

    yield opened
    for window in windows:
        window.context.close()
        assert window.trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("ranks", [4, 1000])
def test_the_verdict_is_read_at_once(show: Callable[..., Open], ranks: int, width: int, scheme: str) -> None:
    culprit = 1 if ranks == 4 else 617
    page = show(big_run(ranks, culprit=culprit), width=width, scheme=scheme).page
    assert page.inner_text("h1").startswith(f"RewardWorker/{culprit} (gpu-")
    assert page.locator(".word").inner_text() == "HANG"
    # On the first screen: the verdict, and who waits for whom begins.
    assert page.locator("h1").bounding_box()["y"] < 300
    assert page.locator("svg.chain").first.bounding_box()["y"] < 844
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg.chain").first.bounding_box()["width"] <= width
    assert page.locator(".card .title").inner_text() == f"RewardWorker/{culprit}"
    assert page.locator(".card .stack .own").first.inner_text().split() == ["normalise_answer", "rewards/maths.py:30"]
    lightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3")
    assert (lightness < 60) == (scheme == "dark")
    assert len(page.screenshot()) > 10_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_can_be_read(show: Callable[..., Open], scheme: str) -> None:
    """WCAG's 4.5 to 1 for text, in both themes."""
    page = show(big_run(4), scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    found = page.evaluate(CONTRAST, READ)
    assert set(found) == set(READ)
    assert {selector: round(ratio, 2) for selector, ratio in found.items() if ratio < 4.5} == {}
    small = page.evaluate(SMALL)
    assert small == []


def test_the_few_are_never_narrow(show: Callable[..., Open]) -> None:
    for width in (PHONE, DESK):
        page = show(big_run(1000, culprit=617), width=width).page
        widths = page.evaluate("[...document.querySelectorAll('.ice .leaf')].map((n) => n.getBoundingClientRect().width)")
        assert len(widths) == 3
        assert min(widths) >= 190
        first = page.locator(".ice .leaf").first
        assert "normalise_answer" in first.inner_text()
        assert first.bounding_box()["x"] < width / 2


def test_the_keyboard_reaches_all(show: Callable[..., Open]) -> None:
    page = show(big_run(1000, culprit=617)).page
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.className") == "skip"
    stops = 0
    while "cell" not in page.evaluate(f"{focused}.className.baseVal ?? {focused}.className"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops < 60
    # The accused is where the Tab key arrives; its words stand below; the arrows walk; one more Tab leaves the thousand cells.
    assert page.evaluate(f"{focused}.title").startswith("accused, RewardWorker/617 ")
    assert page.inner_text("#told").startswith("accused, RewardWorker/617 ")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#told").startswith("RewardWorker/618 on gpu-078")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    assert page.inner_text("#told").startswith("RewardWorker/616 on gpu-078")
    page.keyboard.press("Tab")
    assert "cell" not in page.evaluate(f"{focused}.className.baseVal ?? {focused}.className")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    row = page.locator("tr:target")
    assert row.is_visible()
    assert "RewardWorker/617" in row.inner_text()
    page.fill("#find", "gpu-004")
    assert page.locator("#processes tbody tr:visible").count() == 8
    assert page.inner_text("#found") == "8 of 1002"


def test_a_link_to_a_stack_opens_it(show: Callable[..., Open]) -> None:
    page = show(big_run(4)).page
    page.locator("#raw summary").first.click()
    page.locator("#processes a[href^='#s']").first.click()
    assert page.locator(":target .stack").is_visible()


def test_without_script_nothing_is_lost(show: Callable[..., Open]) -> None:
    page = show(big_run(4), script=False).page
    assert "it is in normalise_answer" in page.inner_text("h1")
    page.locator("#raw summary").first.click()
    assert page.locator("#processes tbody tr").first.is_visible()


@pytest.mark.parametrize("bad", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_do_nothing(show: Callable[..., Open], bad: str) -> None:
    page = show(hostile_run(bad), width=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.mouse.move(100, 300)
    assert page.locator(".word").inner_text() in ("HANG", "UNKNOWN", "SLOW")
    assert page.locator("script").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_what_slips_in_cannot_run(browser: object, tmp_path: Path) -> None:
    """The policy is the second wall: markup put into the page after all neither runs nor loads."""
    path = tmp_path / "report.html"
    snapshot = big_run(4)
    html = render(diagnose(snapshot), snapshot)
    inside = "<script>window.ran = 1</script><img src='http://127.0.0.1:9/x.png' onerror='window.ran = 1'><b id=hot onclick='window.ran = 1'>hot</b>"
    path.write_text(html.replace("<h1>", f"{inside}<style>h1 {{ color: rgb(1, 2, 3) }}</style><h1>", 1), "utf-8")
    window = Open(browser, path, DESK, "light")
    window.page.click("#hot")
    assert window.page.evaluate("window.ran") is None
    assert window.page.evaluate("getComputedStyle(document.querySelector('h1')).color") != "rgb(1, 2, 3)"
    assert len([t for t in window.trouble if "Content Security Policy" in t]) >= 4
    window.context.close()
