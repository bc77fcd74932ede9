"""What is wider than its place on the built pages, at the widths of a desk and of a phone.

    python doc/check_width.py doc/_build/html

Needs Chromium or Chrome on the path, and is for developers: `.ci/run` has no browser. There, the tests check what can
be told without one, the longest line of a code block.

Every page is loaded in a frame of the width in question by one page that measures them all, so that the browser starts
once. A page must not scroll sideways. On a desk, no code and no table may; on a phone they may scroll inside their box.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

DESK, PHONE = 1440, 390
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_REPORT = "measured"

_MEASURE = """
<!doctype html><meta charset="utf-8"><pre id="%(report)s"></pre>
<script>
const pages = %(pages)s, widths = %(widths)s, found = [];
function scrolls(element) {
  return /auto|scroll/.test(element.ownerDocument.defaultView.getComputedStyle(element).overflowX);
}
function inScrollingBox(element) {
  for (let box = element; box && box.tagName !== "BODY"; box = box.parentElement) if (scrolls(box)) return true;
  return false;
}
function measure(page, width, view) {
  const root = view.document.documentElement;
  if (root.scrollWidth > width + 1) found.push([page, width, "page", `${root.scrollWidth} px`]);
  for (const element of view.document.querySelectorAll("article pre, article table, article img, article math, h1")) {
    const box = element.closest(".pst-scrollable-table-container") || element.parentElement;
    const wide = Math.max(element.scrollWidth - element.clientWidth, box.scrollWidth - box.clientWidth);
    const right = element.getBoundingClientRect().right;
    if (!element.clientWidth || (wide <= 1 && right <= width)) continue;
    if (width < 600 && inScrollingBox(element)) continue;
    const text = (element.alt || element.innerText || "").trim().split("\\n").sort((a, b) => b.length - a.length)[0];
    found.push([page, width, element.tagName.toLowerCase(), `${Math.round(wide)} px: ${text.slice(0, 100)}`]);
  }
}
(async () => {
  for (const width of widths) for (const page of pages) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `border:0;width:${width}px;height:900px`;
    frame.src = page;
    await new Promise(loaded => { frame.onload = loaded; document.body.append(frame); });
    measure(page, width, frame.contentWindow);
    frame.remove();
  }
  await fetch("/%(report)s", {method: "POST", body: JSON.stringify(found)});
})();
</script>
"""


class _Handler(SimpleHTTPRequestHandler):
    """Serves the pages and the one that measures them, and takes in what that found."""

    def __init__(self, *args, measure, found, **kwargs):
        self.measure, self.found = measure, found
        super().__init__(*args, **kwargs)

    def do_GET(self):
        if self.path != f"/{_REPORT}":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.measure.encode())

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


def check_width(folder, widths=(DESK, PHONE), timeout=300):
    """Everything that is too wide: rows of page, width, element and what it says."""
    from queue import Queue

    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise FileNotFoundError(f"No browser on the path: one of {', '.join(_BROWSERS)}.")
    folder, found = Path(folder), Queue()
    pages = sorted("/" + quote(page.relative_to(folder).as_posix()) for page in folder.rglob("*.html"))
    measure = _MEASURE % {"report": _REPORT, "pages": json.dumps(pages), "widths": json.dumps(list(widths))}
    handler = partial(_Handler, directory=str(folder), measure=measure, found=found)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        address = f"http://127.0.0.1:{server.server_port}/{_REPORT}"
        command = [browser, *flags, "--window-size=1500,1000", "--remote-debugging-port=0", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return found.get(timeout=timeout)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


def main(argv):
    """Print what is too wide; the exit status says whether anything is."""
    found = check_width(argv[0])
    for page, width, element, text in found:
        print(f"{page} at {width} px: {element}, {text}")
    print(f"{len(found)} too wide")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
