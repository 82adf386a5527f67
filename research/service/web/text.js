// A page's markdown as elements: what the marks say, without the marks, and with what fits the question marked.
//
// Only what the readers of ctx write is known: headings, lists, quotes, fences, tables, and rows without a frame. Every
// piece of text is a span of the original, so that marks and passages, which are spans too, fall where they belong.

import { el, visible } from "./dom.js";

const HEADING = /^ {0,3}#{1,6}(?:[ \t]+|$)/;
const BULLET = /^\s*[-*+•][ \t]+/;
const NUMBER = /^\s*\d{1,4}[.)][ \t]+/;
const QUOTE = /^ {0,3}>[ \t]?/;
const FENCE = /^ {0,3}(?:```|~~~)/;
const RULE = /^[ \t|:-]+$/;
const DRAWN = /^[-_=*~.\s]{3,}$/;
const ESCAPED = /^\\(?=[#>*+`~-])/;
const CELL = " | ";
const LONG = 60; // characters of a line that the next one goes on with
const WRAPPED = 30; // the same if that begins small

/** Blocks of a text. `marks` and `passages` are spans as Python counts: by characters, not by halves of them. */
export function blocksOf(text, { marks = [], passages = [] } = {}) {
  const writer = new Writer(text, spans(text, marks), spans(text, passages));
  return groups(linesOf(text)).map((lines) => blockOf(lines, writer)).filter(Boolean);
}

/** A text in one run, marked. */
export function inlineOf(text, marks = []) {
  return new Writer(text, spans(text, marks), []).pieces(0, text.length);
}

function spans(text, given) {
  if (!/[\ud800-\udfff]/.test(text)) return given.map(([start, end]) => [start, end]);
  const at = [];
  let unit = 0;
  for (const character of text) {
    at.push(unit);
    unit += character.length;
  }
  at.push(unit);
  const place = (position) => at[Math.min(position, at.length - 1)];
  return given.map(([start, end]) => [place(start), place(end)]);
}

class Writer {
  constructor(text, marks, passages) {
    this.text = text;
    this.marks = marks;
    this.passages = passages;
  }

  /** The span as text nodes, with <mark> where words fit, and that in .fits where a passage is. */
  pieces(start, end, shownAs = visible) {
    return cut(start, end, this.passages).map(([from, to, fits]) => {
      const within = cut(from, to, this.marks).map(([first, last, marked]) => {
        const shown = shownAs(this.text.slice(first, last));
        return marked ? el("mark", {}, shown) : document.createTextNode(shown);
      });
      return fits ? el("span", { class: "fits" }, within) : within;
    }).flat();
  }
}

/** A span in pieces that are wholly inside or outside of others. */
function cut(start, end, inner) {
  const found = [];
  let at = start;
  for (const [from, to] of [...inner].sort((a, b) => a[0] - b[0])) {
    const first = Math.max(at, from);
    const last = Math.min(end, to);
    if (first >= last) continue;
    if (first > at) found.push([at, first, false]);
    found.push([first, last, true]);
    at = last;
  }
  if (at < end) found.push([at, end, false]);
  return found;
}

function linesOf(text) {
  const found = [];
  let start = 0;
  let fence = 0;
  text.split("\n").forEach((line, number) => {
    if (FENCE.test(line)) fence = fence ? 0 : number + 1;
    else if (fence) found.push({ kind: "code", start, end: start + line.length, number, group: fence, text: line });
    else found.push(lineOf(line, start, number));
    start += line.length + 1;
  });
  return found.filter((line) => line && (line.kind === "code" || line.start < line.end));
}

function lineOf(line, start, number) {
  const made = (kind, from, to, group = 0) => {
    const text = line.slice(from, to);
    const before = text.length - text.trimStart().length;
    const trimmed = text.trim();
    const first = start + from + before;
    return { kind, start: first, end: first + trimmed.length, number, group, text: trimmed };
  };
  const quoted = QUOTE.exec(line)?.[0].length ?? 0;
  const bare = line.slice(quoted).trim();
  if (bare.startsWith("|") && bare.endsWith("|") && bare.length > 1) return made("table", quoted, line.length);
  const heading = HEADING.exec(line);
  if (heading) return made("heading", heading[0].length, line.replace(/[\s#]+$/, "").length);
  const bullet = BULLET.exec(line);
  const cells = bare.split(CELL).length - 1;
  if (cells > (bullet ? 1 : 0)) return made("table", quoted, line.length, cells);
  if (bullet) return made("item", bullet[0].length, line.length, 1);
  if (NUMBER.test(line)) return made("item", 0, line.length);
  if (DRAWN.test(bare)) return null;
  return made("text", quoted + (ESCAPED.exec(bare) ? line.slice(quoted).indexOf("\\") + 1 : 0), line.length);
}

function groups(lines) {
  const found = [];
  for (const line of lines) {
    const before = found.at(-1)?.at(-1);
    if (before && line.number === before.number + 1 && goesOn(before, line)) found.at(-1).push(line);
    else found.push([line]);
  }
  return found;
}

function goesOn(before, line) {
  if (line.kind !== before.kind) return line.kind === "text" && before.kind === "item";
  if (line.kind !== "text") return (line.kind === "table" || line.kind === "code") && line.group === before.group;
  if (".!?:;".includes(before.text.at(-1))) return false;
  return before.text.length >= LONG || (before.text.length >= WRAPPED && /^\p{Ll}/u.test(line.text));
}

function blockOf(lines, writer) {
  const { kind, group } = lines[0];
  if (kind === "table") return tableOf(lines, writer);
  if (kind === "code") return el("pre", { tabindex: "0" }, joined(lines, writer, "\n"));
  if (kind === "heading") return el("p", { class: "heading" }, joined(lines, writer, " "));
  return el("p", { class: kind === "item" && group ? "item" : null }, joined(lines, writer, " "));
}

function joined(lines, writer, between) {
  return lines.flatMap((line, number) => [...(number ? [between] : []), ...writer.pieces(line.start, line.end)]);
}

function tableOf(lines, writer) {
  const header = lines.length > 1 && RULE.test(lines[1].text);
  const rows = lines.filter((line) => !RULE.test(line.text));
  if (!rows.length) return null;
  const made = rows.map((line, number) => el("tr", {}, cellsOf(line).map(([start, end]) =>
    el(header && number === 0 ? "th" : "td", header && number === 0 ? { scope: "col" } : {}, writer.pieces(start, end, cellText)))));
  return el("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {},
    header ? el("thead", {}, made[0]) : null, el("tbody", {}, header ? made.slice(1) : made)));
}

const cellText = (text) => visible(text.replaceAll("\\|", "|"));

/** The spans of a row's cells. */
function cellsOf(line) {
  const framed = !line.group;
  const [first, last] = framed ? [line.start + 1, line.end - 1] : [line.start, line.end];
  const inner = line.text.slice(first - line.start, last - line.start);
  const ends = framed ? /(?<!\\)\|/g : / \| /g;
  const found = [];
  let at = 0;
  for (const match of [...inner.matchAll(ends), { index: inner.length, 0: "" }]) {
    const cell = inner.slice(at, match.index);
    const start = first + at + (cell.length - cell.trimStart().length);
    found.push([start, start + cell.trim().length]);
    at = match.index + match[0].length;
  }
  return found;
}
