"""Screenshots as small PNG files: the 160 most frequent colours, without metadata."""

import base64
import struct
import zlib

from playwright.sync_api import Page

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE = 3  # PNG's type of an image whose pixels are numbers of colours

# A page of text has few colours but for the edges of its letters, which take the nearest one that is kept.
_REDUCE = """async (screenshot) => {
  const image = new Image();
  image.src = screenshot;
  await image.decode();
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
  const counts = new Map();
  for (const color of pixels) counts.set(color, (counts.get(color) ?? 0) + 1);
  const kept = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, 160);
  const channels = (color) => [color & 255, color >> 8 & 255, color >> 16 & 255];
  const palette = kept.map(channels);
  const numbers = new Map(kept.map((color, number) => [color, number]));
  for (const color of counts.keys()) {
    if (numbers.has(color)) continue;
    const [red, green, blue] = channels(color);
    const distances = palette.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2);
    numbers.set(color, distances.indexOf(Math.min(...distances)));
  }
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([Uint8Array.from(pixels, (color) => numbers.get(color))]));
  await new Promise((resolve) => { reader.onload = resolve; });
  return [image.width, image.height, palette.flat(), reader.result.split(",")[1]];
}"""


def small_png(screenshot: bytes, page: Page) -> bytes:
    """Return a screenshot with at most 160 colours. `page` is an empty one, whose JavaScript does the work."""
    source = "data:image/png;base64," + base64.b64encode(screenshot).decode()
    width, height, palette, numbers = page.evaluate(_REDUCE, source)
    return encode(width, height, palette=bytes(palette), numbers=base64.b64decode(numbers))


def encode(width: int, height: int, *, palette: bytes, numbers: bytes) -> bytes:
    """Return a PNG file; `numbers` has one byte a pixel, `palette` three a colour."""
    rows = b"".join(b"\0" + numbers[start : start + width] for start in range(0, width * height, width))
    header = struct.pack(">IIBBBBB", width, height, 8, _PALETTE, 0, 0, 0)
    data = zlib.compress(rows, level=9)
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", data), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(name, content) for name, content in parts)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
