// The card of a source: its page in small, where it is from, and the passages that fit the question.

import { el, icon, pageName, visible } from "./dom.js";
import { pageHash } from "./place.js";
import { blocksOf } from "./text.js";
import { drawBoxes, headings } from "./page.js";

const PASSAGES = 2; // shown at once; the rest on demand
const BEGINNING = 500; // characters of a page without passages

export function sourceCard(source, marks) {
  const number = source.citation;
  const hash = pageHash(source.doc_id, source.page);
  const name = `${visible(source.filename)}, ${pageName(source.page, source.page_label)}`;
  const card = el(
    "article",
    { class: "source", id: `source-${number}`, tabindex: "-1", "aria-label": `Source ${number}: ${name}` },
    thumbnail(source, hash, name),
    el(
      "div",
      { class: "source-text" },
      el(
        "h3",
        {},
        el("span", { class: "number", "aria-hidden": "true" }, String(number)),
        el("a", { href: hash, class: "source-name" }, source.filename),
        el("span", { class: "soft page" }, pageName(source.page, source.page_label)),
      ),
      sectionLine(source),
      passagesOf(source, marks),
      el(
        "p",
        { class: "source-foot soft" },
        score(source.relevance_score),
        source.ocr ? el("span", {}, "read from a picture") : null,
        el("a", { href: hash }, "Open the page"),
        el("a", { href: source.file_url, target: "_blank", rel: "noopener" }, "PDF"),
      ),
    ),
  );
  card.addEventListener("click", (event) => {
    // Anywhere on the card, but not while text is being selected, and not in the place of what is there to be clicked.
    if (event.target.closest("a, button, summary, .wide") || !getSelection().isCollapsed) return;
    location.hash = hash;
  });
  return card;
}

function thumbnail(source, hash, name) {
  if (!source.thumbnail_url)
    return el("a", { class: "thumbnail none", href: hash, tabindex: "-1", "aria-hidden": "true" }, icon("file"));
  const picture = el("img", {
    src: source.thumbnail_url,
    alt: `Picture of ${name}`,
    loading: "lazy",
    decoding: "async",
    width: "181",
    height: "256",
  });
  const sheet = el("a", { class: "thumbnail", href: hash, tabindex: "-1" }, picture);
  // The frame of a portrait page is there before the picture is; one of another shape takes its own.
  picture.addEventListener("load", () => {
    sheet.style.aspectRatio = `${picture.naturalWidth} / ${picture.naturalHeight}`;
  });
  picture.addEventListener("error", () => sheet.replaceChildren(icon("file")));
  drawBoxes(
    sheet,
    source.passages
      .slice(0, PASSAGES)
      .map((passage) => passage.box)
      .filter(Boolean),
  );
  return sheet;
}

function sectionLine(source) {
  const path = source.passages.find((passage) => passage.section_path)?.section_path ?? source.section_path ?? "";
  const parts = headings(source.title, source.filename, path);
  return parts.length ? el("p", { class: "section soft", dir: "auto" }, parts.join(" › ")) : null;
}

function passagesOf(source, marks) {
  const shown = source.passages
    .map((passage, number) => ({ passage, marks: marks?.[number] ?? [] }))
    .filter(({ passage }) => passage.text);
  if (!shown.length) {
    const text = source.markdown_content.slice(0, BEGINNING);
    return el(
      "div",
      { class: "passage", dir: "auto" },
      blocksOf(text),
      source.markdown_content.length > BEGINNING ? "…" : "",
    );
  }
  const made = shown.map((each) =>
    el("div", { class: "passage", dir: "auto" }, blocksOf(each.passage.text, { marks: each.marks })),
  );
  if (made.length <= PASSAGES) return made;
  return [
    ...made.slice(0, PASSAGES),
    el(
      "details",
      { class: "more" },
      el("summary", {}, `${made.length - PASSAGES} more from this page`),
      made.slice(PASSAGES),
    ),
  ];
}

function score(value) {
  const meter = el("meter", { min: "0", max: "1", value: String(value), "aria-hidden": "true" });
  return el(
    "span",
    { class: "score", title: "How likely it is that this page answers, from 0 to 1" },
    meter,
    `relevance ${value.toFixed(2)}`,
  );
}
