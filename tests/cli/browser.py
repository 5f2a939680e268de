# SPDX-License-Identifier: Apache-2.0
"""A real browser without a window: chromium, driven over its DevTools protocol by a small websocket client."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time

ANSWER_SECONDS = 120  # a busy machine starts a browser slowly


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class WebSocket:
    """Texts, to a server that we trust: RFC 6455 without extensions."""
    def __init__(self, url):
        address, _, path = url.removeprefix("ws://").partition("/")
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS)
        self.stream = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET /{path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        if b" 101 " not in self.stream.readline():
            raise OSError("the browser does not speak websocket")
        while self.stream.readline().strip():
            pass

    def send_frame(self, kind, data):
        mask = os.urandom(4)
        length = len(data)
        size = struct.pack("!B", 0x80 | length) if length < 126 else (
            struct.pack("!BH", 0x80 | 126, length) if length < 1 << 16 else struct.pack("!BQ", 0x80 | 127, length))
        repeated = (mask * (length // 4 + 1))[:length]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(length, "big") if length else b""
        self.socket.sendall(bytes([0x80 | kind]) + size + mask + masked)

    def send(self, text):
        self.send_frame(1, text.encode())

    def take(self, count):
        data = self.stream.read(count)
        if len(data) != count:
            raise EOFError("the browser went away")
        return data

    def receive(self, seconds):
        """The next text; TimeoutError only before its first byte."""
        text = b""
        while True:
            self.socket.settimeout(seconds if not text else ANSWER_SECONDS)
            first, second = self.take(2)
            self.socket.settimeout(ANSWER_SECONDS)
            length = second & 127
            if length > 125:
                length = int.from_bytes(self.take(2 if length == 126 else 8), "big")
            data, kind = self.take(length), first & 15
            if kind == 9:
                self.send_frame(10, data)
            elif kind == 8:
                raise EOFError("the browser ended the conversation")
            elif kind in (0, 1, 2):
                text += data
                if first & 0x80:
                    return text.decode()

    def close(self):
        self.stream.close()
        self.socket.close()


class Browser:
    def __init__(self, directory):
        """`directory` is its own, and may be removed when it has ended."""
        profile = pathlib.Path(directory) / "profile"
        # Without its sandbox, which not every machine lets it have: it sees pages of our own alone.
        words = [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--remote-debugging-port=0",
                 "--no-first-run", "--no-default-browser-check", "--disable-extensions", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio",
                 "--no-proxy-server", "--force-color-profile=srgb", "--password-store=basic", "about:blank"]
        environment = {**os.environ, "HOME": str(directory), "TZ": "UTC"}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=environment, start_new_session=True)
        try:
            self.socket = WebSocket(self.find_address(profile / "DevToolsActivePort"))
        except BaseException:
            self.end()
            raise
        self.number, self.events = 0, []

    def find_address(self, path):
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise OSError(f"chromium ended with {self.process.returncode}")
            with contextlib.suppress(OSError):
                lines = path.read_text().split("\n")
                if len(lines) > 1 and lines[1]:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1].strip()}"
            time.sleep(0.05)
        raise TimeoutError("chromium did not say where it listens")

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        self.socket.send(json.dumps(message))
        end = time.monotonic() + ANSWER_SECONDS
        while True:
            answer = json.loads(self.socket.receive(max(0.01, end - time.monotonic())))
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Page(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def end(self):
        """With its children, all of which are in a session of their own."""
        if hasattr(self, "socket"):
            with contextlib.suppress(OSError, EOFError, RuntimeError):
                self.call("Browser.close")
            self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


KEYS = {"Tab": 9, "Enter": 13, "Space": 32}


# Boxes beyond the edge of the page; words of charts beyond the edge of theirs, or on top of each other.
MISPLACED = """(() => {
const found = [], width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) found.push('the page is scrolled sideways');
for (const e of document.querySelectorAll('h1,h2,h3,p,li,figure,figure svg,figcaption,dl div,button,summary,.table')) {
    const box = e.getBoundingClientRect();
    if (box.left < -0.5 || box.right > width + 0.5) found.push('beyond the edge: ' + e.outerHTML.slice(0, 80));
}
for (const chart of document.querySelectorAll('svg.chart')) {
    const around = chart.getBoundingClientRect();
    const words = Array.from(chart.querySelectorAll('text')).map(e => [e.textContent, e.getBoundingClientRect()]);
    words.forEach(([text, box], i) => {
        if (box.left < around.left - 1 || box.right > around.right + 1 || box.top < around.top - 1 || box.bottom > around.bottom + 1)
            found.push('beyond its chart: ' + text);
        for (const [other, its] of words.slice(0, i))
            if (Math.min(box.right, its.right) - Math.max(box.left, its.left) > 1 &&
                Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top) > 2)
                found.push('on top of each other: ' + other + ' and ' + text);
    });
}
return found })()"""


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression, seconds=ANSWER_SECONDS):
        end, value = time.monotonic() + seconds, None
        while time.monotonic() < end:
            with contextlib.suppress(RuntimeError):  # a page that is just being replaced
                value = self.evaluate(expression)
                if value:
                    return value
            time.sleep(0.05)
        raise AssertionError(f"never came true: {expression}; it is {value!r}")

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url.rstrip('/'))})")

    def press(self, key):
        """Through the whole browser, as a keyboard does."""
        code = KEYS[key]
        text = {"Enter": "\r", "Space": " "}.get(key)
        name = " " if key == "Space" else key
        common = {"key": name, "code": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def misplaced(self):
        """What a reader could not read, or not at once."""
        return self.evaluate(MISPLACED)

    def count(self, selector):
        """Of elements, also where scripts are off; 0 while a page is just being replaced."""
        with contextlib.suppress(RuntimeError):
            root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
            return len(self.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"])
        return 0

    def markup(self, selector):
        """Nothing while a page is just being replaced."""
        with contextlib.suppress(RuntimeError):
            root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
            node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
            return self.call("DOM.getOuterHTML", nodeId=node)["outerHTML"] if node else ""
        return ""

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
        print(f"screenshot: {path}", flush=True)

    def complaints(self):
        """What its console would show in red since the last time."""
        self.evaluate("0")  # so that all that was said is there
        mine = [event for event in self.browser.events if event.get("sessionId") == self.session]
        self.browser.events = []
        found = []
        for event in mine:
            values = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(values["exceptionDetails"].get("exception", {}).get("description") or str(values))
            elif event["method"] == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
                found.append(str(values["args"]))
            elif event["method"] == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                found.append(f"{values['entry']['text']} {values['entry'].get('url', '')}")
        return found
