#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of `ulpsync serve` in a real browser: test_dashboard.py ULPSYNC OUTPUT [unittest arguments]. Screenshots are kept
in OUTPUT. Ends with 77 where there is no chromium."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import cli_case
from browser import Browser, find_chromium
from cli_case import moved, weights, write_model
from serve_case import ServeCase

OUTPUT = None
SKIPPED = 77
PHONE, DESK = (390, 844, True), (1280, 900)
VERSION = "document.querySelector('#figures .facts dd').textContent"


class Dashboard(ServeCase):
    """A run of some steps with a trainer and workers that tell; one browser for all tests."""
    @classmethod
    def setUpClass(cls):
        cls.place_of_browser = tempfile.mkdtemp()
        cls.browser = Browser(cls.place_of_browser)

    @classmethod
    def tearDownClass(cls):
        cls.browser.end()
        shutil.rmtree(cls.place_of_browser, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.number, self.data, self.workers = 0, weights(4000), []

    def step(self, name="rl"):
        """The next version, told of and followed."""
        model = self.dir / "model.safetensors"
        write_model(model, {"w": ("BF16", [len(self.data) // 2], self.data)})
        reward = 0.3 + 0.02 * (self.number % 7) + 0.01 * self.number
        self.publish(model, "--step", self.number * 5, "--tell", "trainer", "--note", f"reward={reward:.3f}", name=name,
                     state=f"state-{name}")
        for worker in self.workers:
            self.follow(f"{name}-{worker}", "--tell", worker, name=name)
        self.data, self.number = moved(self.data, seed=self.number), self.number + 1

    def steps(self, count):
        for _ in range(count):
            self.step()

    def open(self, path="/", size=DESK):
        page = self.browser.page()
        page.resize(*size)
        page.colours("light")
        page.go(self.url + path)
        return page

    def open_run(self, size=DESK):
        page = self.open("/~/run/rl", size)
        page.wait_for("document.getElementById('state').textContent === 'live'")
        return page

    def version_is(self, page, number):
        page.wait_for(f"{VERSION} === '{number}'")

    def quiet(self, page):
        self.assertEqual(page.complaints(), [])

    def fits(self, page):
        self.assertEqual(page.misplaced(), [])

    def test_charts_and_a_new_step(self):
        self.workers = ["worker-0", "worker-1"]
        self.steps(5)
        self.serve()
        page = self.open_run()
        self.assertEqual(page.evaluate("location.pathname"), "/~/run/rl")
        titles = page.evaluate("Array.from(document.querySelectorAll('#figures figure h3')).map(e => e.textContent.toLowerCase())")
        for title in ("reward by step", "bytes of each step", "density by step"):
            self.assertIn(title, titles)
        self.assertEqual(page.evaluate("document.querySelectorAll('#figures figure').length"),
                         page.evaluate("document.querySelectorAll('#figures figure svg.chart').length"), "a chart in each")
        self.assertEqual(page.evaluate("Array.from(document.querySelectorAll('svg.chart')).filter(e => !e.querySelector('title,desc')"
                                       " && !e.getAttribute('aria-label')).length"), 0, "each has words for who cannot see it")
        self.version_is(page, 4)
        page.evaluate("window.stays = document.querySelector('#figures'); 1")
        drawn = page.evaluate("document.querySelector('#figures figure svg').outerHTML")
        self.step()
        self.version_is(page, 5)
        self.assertTrue(page.evaluate("window.stays === document.querySelector('#figures')"), "the page was not loaded anew")
        self.assertNotEqual(page.evaluate("document.querySelector('#figures figure svg').outerHTML"), drawn)
        cells = page.evaluate("Array.from(document.querySelectorAll('#figures details:last-of-type tbody tr:first-child td'))"
                              ".map(e => e.textContent)")
        self.assertEqual(cells[:2], ["5", "25"])
        page.wait_for("performance.getEntriesByType('resource').filter(e => e.name.includes('figures')).length > 3")
        self.assertGreater(self.metrics().get(("ulpsync_serve_requests_total", ("code", "304")), 0), 0, "nothing new costs nothing")
        page.screenshot(OUTPUT / "run-light.png")
        self.quiet(page)

    def test_keyboard(self):
        self.steps(3)
        self.serve()
        page = self.open_run()
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.textContent"), "Skip to the figures")
        page.screenshot(OUTPUT / "skip-link.png")
        page.press("Enter")
        page.wait_for("document.activeElement.id === 'figures'")
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.tagName"), "SUMMARY", "the first thing within")
        page.evaluate("window.kept = document.activeElement; 1")
        page.press("Enter")
        page.wait_for("!window.kept.parentElement.open")
        self.step()
        self.version_is(page, 3)
        self.assertTrue(page.evaluate("window.kept === document.activeElement && document.contains(window.kept)"), "focus stays")
        self.assertFalse(page.evaluate("document.activeElement.parentElement.open"), "what was folded stays folded")
        self.quiet(page)

    def see(self, page, seen):
        page.evaluate(f"Object.defineProperty(document, 'hidden', {{value: {'false' if seen else 'true'}, configurable: true}});"
                      "document.dispatchEvent(new Event('visibilitychange'))")

    def asks_nothing(self, page):
        """For longer than it takes to look again, once what was under way has ended."""
        asked, end = "performance.getEntriesByType('resource').length", time.monotonic() + 60
        before = None
        while (now := page.evaluate(asked)) != before:
            self.assertLess(time.monotonic(), end, "it goes on asking")
            before = now
            time.sleep(1.5)

    def test_pause(self):
        self.steps(2)
        self.serve()
        page = self.open_run()
        page.press("Tab")
        page.press("Tab")
        self.assertEqual(page.evaluate("document.activeElement.id"), "pause")
        page.press("Space")
        page.wait_for("document.getElementById('state').textContent === 'paused'")
        self.step()
        self.asks_nothing(page)
        self.assertEqual(page.evaluate(VERSION), "1")
        page.press("Space")
        self.version_is(page, 2)
        # a tab that nobody sees asks for nothing either
        self.see(page, False)
        self.step()
        self.asks_nothing(page)
        self.assertEqual(page.evaluate(VERSION), "2")
        self.see(page, True)
        self.version_is(page, 3)
        self.quiet(page)

    def test_phone_and_dark(self):
        self.workers = ["worker-0", "a-worker-with-a-very-long-name-in-the-cluster-of-the-third-hall"]
        self.steps(9)
        self.serve()
        page = self.open_run(PHONE)
        self.fits(page)
        self.assertGreaterEqual(page.evaluate("document.getElementById('pause').getBoundingClientRect().height"), 36, "for thumbs")
        page.screenshot(OUTPUT / "phone-light.png")
        page.colours("dark")
        background = "getComputedStyle(document.body).backgroundColor"
        page.wait_for(f"{background} !== 'rgb(255, 255, 255)'")
        self.assertGreater(page.evaluate(
            "(() => { const light = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255)"
            ".map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };"
            "const style = getComputedStyle(document.body); return (light(style.color) + 0.05) / (light(style.backgroundColor) + 0.05) })()"),
            7, "contrast")
        self.fits(page)
        page.screenshot(OUTPUT / "phone-dark.png")
        page.resize(*DESK)
        self.fits(page)
        page.screenshot(OUTPUT / "run-dark.png")
        page.resize(320, 600, True)
        self.fits(page)
        self.quiet(page)

    def see_file(self, name):
        """A page that is a file, in all sizes."""
        page = self.browser.page()
        page.colours("light")
        page.go((self.dir / f"{name}.html").as_uri())
        for size, label in ((DESK, "desk"), (PHONE, "phone"), ((320, 600, True), None)):
            page.resize(*size)
            self.fits(page)
            if label:
                page.screenshot(OUTPUT / f"{name}-{label}.png")
        self.quiet(page)
        return page

    def test_reports_and_studies(self):
        steps = self.dir / "steps"
        self.json("synth", "-o", steps, "--params", "100K", "--steps", 16)
        paths = sorted(steps.iterdir())
        for number, path in enumerate(paths):
            self.publish(path, "--step", number, "--tell", "trainer", "--note", f"reward={0.3 + 0.01 * number}")
            if number % 8 == 0:
                self.follow("out", "--tell", "a-worker-with-a-very-long-name-in-the-cluster-of-the-third-hall")
        self.json("report", *self.place(), "-o", self.dir / "report.html")
        self.see_file("report")
        self.json("study", *paths, "--html", self.dir / "study.html")
        page = self.see_file("study")
        wide = "document.querySelector('.table')"
        self.assertGreater(page.evaluate(f"{wide}.scrollWidth - {wide}.clientWidth"), 100, "the table is wider than a phone")
        page.evaluate(f"{wide}.scrollTo(9999, 0)")
        self.assertTrue(page.evaluate(f"{wide}.querySelector('tr').lastChild.getBoundingClientRect().right <= innerWidth"))

    def test_connection_lost_and_found(self):
        self.steps(2)
        self.serve()
        page = self.open_run()
        port = self.port
        self.quiet(page)
        self.stop_server()
        page.wait_for("document.getElementById('state').textContent.startsWith('connection lost')")
        page.screenshot(OUTPUT / "connection-lost.png")
        self.step()
        self.server = self.start("serve", self.store, "--listen", f"127.0.0.1:{port}", stdout=subprocess.DEVNULL)
        page.wait_for("document.getElementById('state').textContent === 'live'")
        self.version_is(page, 2)

    def test_lists(self):
        self.store.mkdir()
        self.serve()
        page = self.open("/")
        self.assertIn("There is no run yet", page.evaluate("document.body.textContent"))
        self.step("one")
        time.sleep(1.1)  # the server looks for runs once a second
        page.go(self.url + "/")
        page.wait_for("location.pathname === '/~/run/one'")
        self.number, self.data = 0, weights(4000, 2)
        self.step("one-2")
        time.sleep(1.1)
        page.go(self.url + "/?again")
        page.wait_for("document.querySelectorAll('main li a').length === 2")
        self.assertEqual(page.evaluate("Array.from(document.querySelectorAll('main li')).map(e => e.textContent)"),
                         ["one: version 0, step 0", "one-2: version 0, step 0"])
        page.resize(*PHONE)
        self.fits(page)
        page.screenshot(OUTPUT / "runs-phone.png")
        page.press("Tab")
        page.press("Enter")
        page.wait_for("location.pathname === '/~/run/one'")
        self.quiet(page)

    def test_begins_before_the_run(self):
        """Somebody looks at a run that is not there yet."""
        self.store.mkdir()
        self.serve("--run", "rl")
        page = self.open("/")
        page.wait_for("location.pathname === '/~/run/rl'")
        self.assertIn("no version yet", page.evaluate("document.body.textContent"))
        self.step()
        self.version_is(page, 0)
        self.step()
        page.wait_for("document.querySelectorAll('#figures svg.chart').length > 2")
        self.quiet(page)

    def test_without_scripts(self):
        self.steps(2)
        self.serve()
        page = self.browser.page()
        page.resize(*DESK)
        page.call("Emulation.setScriptExecutionDisabled", value=True)
        page.call("Page.navigate", url=self.url + "/~/run/rl")
        self.wait_for(lambda: page.count("#figures svg.chart") > 2, 120)
        self.assertIn("hidden", page.markup("#pause"))
        before = page.markup("#figures .facts")
        self.step()
        self.wait_for(lambda: page.markup("#figures .facts") not in ("", before), 120)
        page.screenshot(OUTPUT / "no-scripts.png")


def main():
    global OUTPUT
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    OUTPUT = pathlib.Path(sys.argv.pop(2)).absolute()
    if not find_chromium():
        print("skipped: there is no chromium (tools/setup test installs it)")
        sys.exit(SKIPPED)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    cli_case.main()


if __name__ == "__main__":
    main()
