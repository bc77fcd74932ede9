"""Links, anchors and pictures of the built pages that lead nowhere; links to other sites are not followed.

python doc/check_links.py doc/_build/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = {"", "top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := attrs.get(key))}
        self.links += [value for key in ("href", "src") if (value := attrs.get(key))]


def broken_links(folder):
    """Pairs of a page and a link on it that leads nowhere."""
    folder = Path(folder).resolve()
    paths = [path for path in sorted(folder.rglob("*.html")) if path.parts[len(folder.parts)] != "_static"]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in paths}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = target in pages and unquote(parts.fragment) in pages[target].anchors
            if not (known or (target not in pages and target.is_file())):
                yield path.relative_to(folder).as_posix(), link


def main(argv):
    """Print the broken links; the exit status says whether there are any."""
    found = list(broken_links(argv[0]))
    for page, link in found:
        print(f"{page}: {link} leads nowhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
