// The question box: its history, its filters, and what is read from them.

import { byId, el, icon, iconButton, visible } from "./dom.js";
import { emptyAsk } from "./place.js";

const HISTORY = "ctx.history";
const MOST = 50;
const LATEST = 4; // on the start page
const FIELDS = ["pages", "under", "since", "until"];

export class QuestionForm {
  /** `onAsk` gets what is to be asked. */
  constructor(onAsk) {
    this.onAsk = onAsk;
    this.form = byId("ask");
    this.box = byId("q");
    this.history = remembered();
    this.at = -1; // where in the history the box is; -1: what is being written
    this.draft = "";
    this.names = new Map(); // of documents, by id
    this.lists = { doc: new Entries("doc", (id) => this.names.get(id) ?? id), tag: new Entries("tag", (tag) => tag) };
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const ask = this.read();
      if (ask.q) onAsk(ask);
    });
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    // What was asked gives way to what is typed next; a second click sets the cursor into it.
    this.box.addEventListener("focus", () => setTimeout(() => this.box.value === this.asked && this.box.select()));
    this.box.addEventListener("input", () => this.fit());
    byId("recent").addEventListener("beforetoggle", () => this.fillRecent());
    this.fillLatest();
    byId("clear-filters").addEventListener("click", () => {
      this.fill({ ...emptyAsk(), q: this.box.value });
      byId("doc").focus();
    });
    this.form.addEventListener("change", () => this.tellFilters());
  }

  /** Show what an address asks. */
  fill(ask) {
    if (this.box.value.trim() !== ask.q) this.box.value = ask.q;
    this.asked = this.box.value;
    for (const [name, list] of Object.entries(this.lists)) list.set(ask[name]);
    for (const name of FIELDS) byId(name).value = ask[name];
    byId("sources").value = ask.sources ?? "";
    byId("write").checked = ask.write;
    this.tellFilters();
    this.fit();
  }

  read() {
    const ask = { ...emptyAsk(), q: this.box.value.trim(), write: byId("write").checked };
    for (const [name, list] of Object.entries(this.lists)) ask[name] = list.read();
    for (const name of FIELDS) ask[name] = byId(name).value.trim();
    ask.sources = Number.parseInt(byId("sources").value, 10) || null;
    return ask;
  }

  /** Documents and tags there are, to choose from. */
  offer(documents, tags) {
    for (const each of documents) this.names.set(each.doc_id, each.filename).set(each.file_id, each.filename);
    byId("known-documents").replaceChildren(
      ...documents.map((each) => el("option", { value: each.filename }, each.title)),
    );
    byId("known-tags").replaceChildren(...tags.map(({ tag }) => el("option", { value: tag })));
    this.lists.doc.draw();
    this.tellFilters();
  }

  offerModel(name) {
    byId("write-field").hidden = !name;
    byId("model").textContent = name;
  }

  remember(question) {
    this.history = [question, ...this.history.filter((each) => each !== question)].slice(0, MOST);
    this.at = -1;
    this.fillLatest();
    keep(this.history);
  }

  focus() {
    this.box.focus();
    this.box.select();
  }

  /** As high as what is in it. */
  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight}px`;
  }

  tellFilters() {
    const ask = this.read();
    const told = [
      ...ask.doc.map((id) => this.names.get(id) ?? id),
      ...ask.tag.map((tag) => `tag ${tag}`),
      ask.pages && `pages ${ask.pages}`,
      ask.under && `under ${ask.under}`,
      ask.since && `since ${ask.since}`,
      ask.until && `until ${ask.until}`,
      ask.sources && `${ask.sources} sources at most`,
    ].filter(Boolean);
    byId("filters-set").textContent = visible(told.join(" · "));
    byId("filters").classList.toggle("set", told.length > 0);
  }

  onKey(event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.form.requestSubmit();
    }
    const { selectionStart, selectionEnd, value } = this.box;
    if (event.key === "ArrowUp" && !value.slice(0, selectionStart).includes("\n")) this.step(1, event);
    if (event.key === "ArrowDown" && !value.slice(selectionEnd).includes("\n")) this.step(-1, event);
  }

  step(by, event) {
    if (this.at === -1) this.draft = this.box.value;
    let next = this.at + by;
    if (by > 0 && this.history[next] === this.draft.trim()) next += 1; // what stands there already
    if (next < -1 || next >= this.history.length) return;
    event.preventDefault();
    this.at = next;
    this.box.value = next === -1 ? this.draft : this.history[next];
    this.fit();
  }

  /** Questions asked before, as buttons that ask them again. */
  earlier(questions) {
    const choose = (question) => {
      byId("recent").hidePopover();
      this.box.value = question;
      this.fit();
      this.onAsk(this.read());
    };
    return questions.map((question) =>
      el(
        "li",
        {},
        el(
          "button",
          { type: "button", class: "quiet", on: { click: () => choose(question) } },
          icon("recent"),
          el("span", {}, question),
        ),
      ),
    );
  }

  fillLatest() {
    byId("latest").replaceChildren(
      el("ul", { class: "earlier", "aria-label": "Recent questions" }, this.earlier(this.history.slice(0, LATEST))),
    );
  }

  fillRecent() {
    const panel = byId("recent");
    const box = this.box.parentElement.getBoundingClientRect();
    Object.assign(panel.style, { left: `${box.left}px`, top: `${box.bottom + 6}px`, width: `${box.width}px` });
    const forget = () => {
      this.history = [];
      keep([]);
      this.fillLatest();
      panel.hidePopover();
      this.box.focus();
    };
    const entries = this.earlier(this.history);
    panel.replaceChildren(
      ...(entries.length
        ? [
            el("ul", { class: "earlier" }, entries),
            el("button", { type: "button", class: "quiet forget", on: { click: forget } }, "Clear the history"),
          ]
        : [el("p", { class: "soft" }, "Questions that you ask are kept here, in this browser only.")]),
    );
  }
}

/** Several values of one filter: each with a way to take it away, and a field to add one. */
class Entries {
  constructor(name, labelled) {
    this.field = byId(name);
    this.shown = byId(`${name}-entries`);
    this.labelled = labelled;
    this.values = [];
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !this.field.value.trim()) return;
      event.preventDefault();
      this.take();
      this.field.form.dispatchEvent(new Event("change"));
    });
    this.field.addEventListener("change", () => this.take());
  }

  take() {
    const value = this.field.value.trim();
    if (value) this.set([...this.values, value]);
  }

  set(values) {
    this.values = [...new Set(values)];
    this.field.value = "";
    this.draw();
  }

  draw() {
    this.shown.replaceChildren(
      ...this.values.map((value) =>
        el(
          "span",
          { class: "entry" },
          this.labelled(value),
          iconButton("close", `Without ${this.labelled(value)}`, () => {
            this.set(this.values.filter((each) => each !== value));
            this.field.form.dispatchEvent(new Event("change"));
            this.field.focus();
          }),
        ),
      ),
    );
  }

  read() {
    const typed = this.field.value.trim();
    return typed ? [...new Set([...this.values, typed])] : this.values;
  }
}

function remembered() {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each === "string").slice(0, MOST) : [];
  } catch {
    return [];
  }
}

function keep(history) {
  try {
    localStorage.setItem(HISTORY, JSON.stringify(history));
  } catch {
    // A browser that keeps nothing has a history until it is closed.
  }
}
