// Elements. Text of documents, names and titles only ever becomes text: nothing here, or anywhere, parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const DIRECTION = "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";
const INVISIBLE = "\\u00ad\\u180e\\u200b\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}";
const HIDDEN = new RegExp(`[${DIRECTION}${INVISIBLE}]`, "gu");
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text as it may be shown: without characters that nobody sees or that turn what is read. */
export function visible(text) {
  return String(text ?? "").replace(HIDDEN, "").replace(CONTROL, "�");
}

/** An element. `class`, `on` (listeners), `data`, properties and attributes by their names; children are nodes or text. */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    else if (name === "data") Object.assign(made.dataset, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(child))));
  return made;
}

export function icon(name) {
  const drawn = document.createElementNS(SVG, "svg");
  drawn.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `/static/icons.svg#${name}`);
  drawn.append(use);
  return drawn;
}

/** A button that shows an icon and says what it does. */
export function iconButton(name, label, onclick, more = {}) {
  return el("button", { type: "button", class: "quiet icon", "aria-label": label, title: label, on: { click: onclick }, ...more },
    icon(name));
}

export const byId = (id) => document.getElementById(id);

export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Tell whoever listens instead of looking. */
export function say(words) {
  byId("said").textContent = words;
}

/** The physical page, and the printed one where it is another. */
export function pageName(page, label) {
  return label && label !== String(page) ? `page ${page} (printed ${visible(label)})` : `page ${page}`;
}

/** A problem in words, with what to do next, and a way to try again. */
export function problemView(problem, retry) {
  return el("div", { class: "problem", role: "alert" },
    el("p", { class: "problem-title" }, problem.title),
    problem.detail && problem.detail !== problem.title ? el("p", {}, problem.detail) : null,
    (problem.errors ?? []).slice(0, 5).map((error) => el("p", {}, error.detail ?? error.message ?? error.msg ?? "")),
    problem.hint ? el("p", { class: "soft" }, problem.hint) : null,
    retry ? el("button", { type: "button", on: { click: retry } }, "Try again") : null);
}

export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  say(button.textContent);
  setTimeout(() => { button.textContent = before; }, 1500);
}
