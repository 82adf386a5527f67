// The documents there are: a list to search, their outlines, and a way to ask one of them alone.

import { Problem, getJson } from "./api.js";
import { byId, counted, el, icon, pageName, problemView } from "./dom.js";
import { hashFor } from "./place.js";

const AT_ONCE = 60;
const PAUSE = 150; // milliseconds after the last letter

const link = (id, page) => hashFor("documents", { id, number: page });

export class DocumentsView {
  /** `onAsk` gets a document to ask alone. */
  constructor(onAsk) {
    this.onAsk = onAsk;
    this.list = byId("documents");
    this.tags = new Set();
    this.isStale = true;
    byId("find").addEventListener("input", () => {
      clearTimeout(this.pause);
      this.pause = setTimeout(() => this.load(), PAUSE);
    });
  }

  show() {
    if (this.isStale) this.load();
  }

  /** Something was added: look again when it is next shown, or now. */
  refresh(isShown) {
    this.isStale = true;
    if (isShown) this.load();
  }

  async load(offset = 0) {
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.isStale = false;
    try {
      const asked = new URLSearchParams({ q: byId("find").value.trim(), limit: AT_ONCE, offset });
      for (const tag of this.tags) asked.append("tag", tag);
      const [found, known] = await Promise.all([getJson(`/api/documents?${asked}`, { signal }), getJson("/api/tags", { signal })]);
      this.drawTags(known.tags);
      this.draw(found, offset);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Problem)) throw error;
      this.isStale = true;
      this.list.replaceChildren(problemView(error, () => this.load(offset)));
    }
  }

  drawTags(tags) {
    for (const tag of this.tags) if (!tags.some((each) => each.tag === tag)) this.tags.delete(tag);
    byId("tags").replaceChildren(...tags.map(({ tag, documents }) => el("button", {
      type: "button",
      class: "entry",
      "aria-pressed": String(this.tags.has(tag)),
      on: { click: () => this.toggle(tag) },
    }, tag, el("span", { class: "soft" }, ` ${documents}`))));
  }

  toggle(tag) {
    if (!this.tags.delete(tag)) this.tags.add(tag);
    const at = [...byId("tags").children].findIndex((each) => each === document.activeElement);
    this.load().then(() => byId("tags").children[at]?.focus());
  }

  draw({ documents, total }, offset) {
    const filtered = this.tags.size || byId("find").value.trim();
    byId("documents-count").textContent = filtered ? `${counted(total, "document")} found` : counted(total, "document");
    byId("documents-tools").hidden = !total && !filtered;
    const rows = documents.map((each) => this.row(each));
    if (offset) this.list.querySelector("ul").append(...rows);
    else this.list.replaceChildren(total ? el("ul", { class: "documents" }, rows) : el("p", { class: "soft" }, filtered ? "No document has that name, title and tags." : "There are no documents yet."));
    this.list.querySelector(".load-more")?.remove();
    const shown = offset + documents.length;
    if (shown < total) {
      this.list.append(el("button", { type: "button", class: "load-more", on: { click: () => this.load(shown) } }, `Show more of ${counted(total, "document")}`));
    }
  }

  row(info) {
    const title = info.title || info.filename;
    const picture = el("img", { src: info.thumbnail_url, alt: "", loading: "lazy", decoding: "async", width: "181", height: "256" });
    picture.addEventListener("error", () => picture.replaceWith(icon("file")));
    const added = new Date(info.timestamp);
    const when = Number.isNaN(added.getTime()) ? "" : added.toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" });
    const facts = [title === info.filename ? "" : info.filename, counted(info.num_pages, "page"), when ? `added ${when}` : ""].filter(Boolean);
    const [button, body] = this.outline(info);
    return el("li", { class: "document" },
      el("a", { class: "thumbnail", href: link(info.doc_id, 1), tabindex: "-1", "aria-hidden": "true" }, picture),
      el("div", {},
        el("h2", { dir: "auto" }, el("a", { href: link(info.doc_id, 1) }, title)),
        el("p", { class: "soft" }, facts.join(" · ")),
        info.tags.length ? el("p", { class: "entries" }, info.tags.map((tag) => el("span", { class: "entry" }, tag))) : null,
        el("div", { class: "document-tools" },
          el("button", { type: "button", class: "quiet small", on: { click: () => this.onAsk(info) } }, "Ask this document"),
          button,
          el("a", { class: "button quiet small", href: info.file_url, target: "_blank", rel: "noopener" }, "PDF")),
        body));
  }

  /** A button, and what it shows. */
  outline(info) {
    const body = el("div", { class: "outline", hidden: true });
    const button = el("button", { type: "button", class: "quiet small", "aria-expanded": "false" }, "Outline");
    const load = async () => {
      try {
        body.replaceChildren(outlineList(await getJson(`${info.url}/outline`), info.doc_id));
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        body.replaceChildren(problemView(error, load));
      }
    };
    button.addEventListener("click", async () => {
      if (!body.childElementCount) await load();
      body.hidden = !body.hidden;
      button.setAttribute("aria-expanded", String(!body.hidden));
    });
    return [button, body];
  }
}

function outlineList(found, id) {
  const entries = found.entries.length
    ? found.entries.map((entry) => ({ ...entry, words: entry.title }))
    : found.pages.map((page) => ({ ...page, level: 1, words: page.text }));
  return el("ol", {}, entries.map((entry) => el("li", { class: `level-${Math.min(entry.level, 4)}` },
    el("a", { href: link(id, entry.page), dir: "auto" }, entry.words || pageName(entry.page, entry.page_label)),
    el("span", { class: "soft", title: pageName(entry.page, entry.page_label) }, `p. ${entry.page}`))));
}
