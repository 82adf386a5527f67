// What a page is shown by, small or large: boxes over its picture, and the headings it stands under.

import { el } from "./dom.js";

const MARGIN = [0.006, 0.003]; // of a box, as part of the page's width and height, so that it touches no letter

/** Boxes over a picture, x0, y0, x1, y1 as parts of it. */
export function drawBoxes(sheet, boxes) {
  sheet.querySelectorAll(".box").forEach((box) => box.remove());
  for (const [x0, y0, x1, y1] of boxes) {
    const box = el("span", { class: "box", "aria-hidden": "true" });
    const left = Math.max(0, x0 - MARGIN[0]);
    const top = Math.max(0, y0 - MARGIN[1]);
    Object.assign(box.style, {
      left: `${100 * left}%`,
      top: `${100 * top}%`,
      width: `${100 * Math.max(0, Math.min(1, x1 + MARGIN[0]) - left)}%`,
      height: `${100 * Math.max(0, Math.min(1, y1 + MARGIN[1]) - top)}%`,
    });
    sheet.append(box);
  }
}

/** A document's title and the headings below it, each once. */
export function headings(title, filename, path) {
  const parts = (path ?? "").split(" > ");
  return [title === filename || title === parts[0] ? "" : title, ...parts].filter(Boolean);
}
