// One page, large: its picture with boxes where the answer stands, its text beside it, its neighbours by arrow keys.

import { Problem, getJson } from "./api.js";
import { byId, el, icon, iconButton, pageName, problemView, visible } from "./dom.js";
import { drawBoxes, headings } from "./page.js";
import { blocksOf } from "./text.js";

const STEP = 1.25;
const LEAST = 0.3;
const MOST = 6;
const WIDEST = 1000; // pixels of a page at first: its picture has not many more
const EDGE = 24; // pixels around it
const LONGEST = 2000; // characters of a question that an address can hold in any script

export class Viewer {
  /** `onMove` hears of another page of the document, `onSource` of another source, `onClose` of the end. */
  constructor({ onMove, onSource, onClose }) {
    this.dialog = byId("viewer");
    this.onMove = onMove;
    this.onSource = onSource;
    this.onClose = onClose;
    this.zoom = 1;
    this.build();
    this.dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      onClose();
    });
    this.dialog.addEventListener("keydown", (event) => this.onKey(event));
    this.pane.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.pane.addEventListener("pointerdown", (event) => this.onGrab(event));
    new ResizeObserver(() => this.size()).observe(this.pane);
  }

  build() {
    this.title = el("h2", { id: "viewer-title" });
    this.section = el("p", { class: "soft section", dir: "auto" });
    this.previous = iconButton("left", "Page before (←)", () => this.step(-1));
    this.next = iconButton("right", "Page after (→)", () => this.step(1));
    this.number = el("input", {
      type: "number",
      min: "1",
      "aria-label": "Page",
      on: { change: () => this.goTo(Number(this.number.value)) },
    });
    this.count = el("span", { class: "soft" });
    this.file = el("a", { class: "button quiet", target: "_blank", rel: "noopener" }, icon("file"), "PDF");
    this.textButton = el(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-pressed": "true",
        title: "Its text (t)",
        on: { click: () => this.toggleText() },
      },
      icon("text"),
      "Text",
    );
    this.picture = el("img", { alt: "" });
    this.sheet = el("div", { class: "sheet" }, this.picture);
    this.pane = el(
      "div",
      { class: "sheet-pane", tabindex: "0", role: "region", "aria-label": "Picture of the page" },
      this.sheet,
    );
    this.text = el("div", { class: "text-pane", tabindex: "0", role: "region", "aria-label": "Text of the page" });
    this.panes = el("div", { class: "panes" }, this.pane, this.text);
    this.picture.addEventListener("load", () => {
      this.sheet.classList.remove("missing");
      this.size();
      this.lookAt();
    });
    this.picture.addEventListener("error", () => this.sheet.classList.add("missing"));
    this.dialog.append(
      el(
        "header",
        { class: "viewer-bar" },
        el("div", { class: "viewer-names" }, this.title, this.section),
        el(
          "div",
          { class: "viewer-tools" },
          el("span", { class: "group" }, this.previous, this.number, this.count, this.next),
          el(
            "span",
            { class: "group zoom" },
            iconButton("minus", "Smaller (−)", () => this.setZoom(this.zoom / STEP)),
            iconButton("plus", "Larger (+)", () => this.setZoom(this.zoom * STEP)),
            iconButton("whole", "The whole page", () => this.wholePage()),
          ),
          el("span", { class: "group" }, this.textButton, this.file),
          iconButton("close", "Close (Esc)", () => this.onClose()),
        ),
      ),
      this.panes,
    );
  }

  get isOpen() {
    return this.dialog.open;
  }

  /** Show a page; `question` finds the places on it. */
  async open(page, question) {
    if (this.isOpen && this.page?.id === page.id && this.page.number === page.number && this.question === question)
      return;
    const isNew = !this.isOpen || this.page?.id !== page.id;
    Object.assign(this, { page, question, shown: null });
    if (!this.isOpen) {
      this.panes.classList.toggle("with-text", matchMedia("(min-width: 60rem)").matches);
      this.tellText();
      this.dialog.showModal();
      document.documentElement.classList.add("behind-dialog");
      this.pane.focus({ preventScroll: true });
    }
    if (isNew) this.zoom = 1;
    this.running?.abort();
    this.running = new AbortController();
    this.dialog.setAttribute("aria-busy", "true");
    drawBoxes(this.sheet, []);
    this.picture.src = `/api/documents/${page.id}/pages/${page.number}/image`;
    this.number.value = page.number;
    try {
      const asked = question ? `?${new URLSearchParams({ question: question.slice(0, LONGEST) })}` : "";
      this.draw(
        await getJson(`/api/documents/${page.id}/pages/${page.number}${asked}`, { signal: this.running.signal }),
      );
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof Problem)) throw error;
      this.fail(error);
    }
    this.dialog.setAttribute("aria-busy", "false");
  }

  close() {
    if (!this.isOpen) return;
    this.running?.abort();
    this.page = null;
    document.documentElement.classList.remove("behind-dialog");
    this.dialog.close();
  }

  draw(found) {
    this.shown = found;
    const name = pageName(found.page, found.page_label);
    this.title.textContent = "";
    this.title.append(el("span", {}, found.filename), el("span", { class: "soft" }, ` ${name}`));
    this.section.textContent = visible(headings(found.title, found.filename, found.section_path).join(" › "));
    this.previous.disabled = !found.previous_url;
    this.next.disabled = !found.next_url;
    this.number.max = found.num_pages;
    this.count.textContent = `of ${found.num_pages}`;
    this.file.href = found.file_url;
    this.picture.alt = `Picture of ${name} of ${found.filename}`;
    this.panes.classList.toggle("without-picture", !found.image_url);
    drawBoxes(this.sheet, found.boxes.map(({ box }) => box).filter(Boolean));
    this.drawText(found);
    this.lookAt();
    for (const number of [found.page + 1, found.page - 1]) {
      if (number > 0 && number <= found.num_pages)
        new Image().src = `/api/documents/${found.doc_id}/pages/${number}/image`;
    }
  }

  drawText(found) {
    const passages = found.passages
      .filter((passage) => passage.end > passage.start)
      .map(({ start, end }) => [start, end]);
    const blocks = blocksOf(found.markdown, { marks: found.matches, passages });
    this.text.replaceChildren(
      found.ocr ? el("p", { class: "soft remark" }, "Read from a picture; letters may be wrong.") : "",
      found.error ? el("p", { class: "danger remark" }, found.error) : "",
      el(
        "div",
        { class: "page-text", dir: "auto" },
        blocks.length ? blocks : el("p", { class: "soft" }, "This page has no text."),
      ),
    );
  }

  fail(problem) {
    this.title.textContent = problem.title;
    this.section.textContent = "";
    this.picture.alt = "";
    this.panes.classList.add("with-text");
    const { page, question } = this;
    this.text.replaceChildren(
      problemView(problem, () => {
        this.page = null;
        this.open(page, question);
      }),
    );
  }

  /** Bring what fits into sight: in the text, and once the picture is there the first box on it. */
  lookAt() {
    const first = this.text.querySelector(".fits");
    this.text.scrollTop = first ? Math.max(0, first.offsetTop - this.text.clientHeight / 4) : 0;
    if (!this.shown || !this.picture.complete || !this.picture.naturalWidth) return;
    const box = this.sheet.querySelector(".box");
    const top = box ? this.sheet.offsetTop + box.offsetTop - this.pane.clientHeight * 0.3 : 0;
    const left = (this.sheet.offsetWidth - this.pane.clientWidth) / 2 + this.sheet.offsetLeft;
    this.pane.scrollTo({ top: Math.max(0, top), left: Math.max(0, left) });
  }

  size() {
    const { naturalWidth: width, naturalHeight: height } = this.picture;
    if (!width || !this.isOpen) return;
    this.sheet.style.aspectRatio = `${width} / ${height}`;
    this.sheet.style.width = `${Math.round(this.base() * this.zoom)}px`;
  }

  base() {
    return Math.max(120, Math.min(WIDEST, this.pane.clientWidth - EDGE));
  }

  setZoom(zoom) {
    const { pane, sheet } = this;
    const at = [
      (pane.scrollLeft + pane.clientWidth / 2) / sheet.offsetWidth,
      (pane.scrollTop + pane.clientHeight / 2) / sheet.offsetHeight,
    ];
    this.zoom = Math.min(MOST, Math.max(LEAST, zoom));
    this.size();
    pane.scrollTo(at[0] * sheet.offsetWidth - pane.clientWidth / 2, at[1] * sheet.offsetHeight - pane.clientHeight / 2);
  }

  wholePage() {
    const { naturalWidth: width, naturalHeight: height } = this.picture;
    if (width) this.setZoom(((this.pane.clientHeight - EDGE) * width) / height / this.base());
  }

  toggleText() {
    this.panes.classList.toggle("with-text");
    this.tellText();
    this.size();
    this.lookAt();
  }

  tellText() {
    this.textButton.setAttribute("aria-pressed", String(this.panes.classList.contains("with-text")));
  }

  step(by) {
    if (this.page) this.goTo(this.page.number + by);
  }

  goTo(number) {
    const last = this.shown?.num_pages ?? Infinity;
    if (!Number.isInteger(number) || number < 1 || number > last) {
      this.number.value = this.page.number;
      return;
    }
    this.onMove({ id: this.page.id, number });
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inField = event.target === this.number;
    const does = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      "+": () => this.setZoom(this.zoom * STEP),
      "=": () => this.setZoom(this.zoom * STEP),
      "-": () => this.setZoom(this.zoom / STEP),
      0: () => this.setZoom(1),
      t: () => this.toggleText(),
    }[event.key];
    if (inField) return;
    if (/^[1-9]$/.test(event.key)) this.onSource(Number(event.key));
    if (!does) return;
    event.preventDefault();
    does();
  }

  onWheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.setZoom(this.zoom * (event.deltaY < 0 ? STEP : 1 / STEP));
  }

  /** With the mouse a large picture is moved by its hand; a finger scrolls anyway. */
  onGrab(event) {
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target === this.pane) return;
    const from = { x: event.clientX + this.pane.scrollLeft, y: event.clientY + this.pane.scrollTop };
    const move = (moved) => this.pane.scrollTo(from.x - moved.clientX, from.y - moved.clientY);
    const end = () => {
      this.pane.removeEventListener("pointermove", move);
      this.pane.classList.remove("grabbed");
    };
    this.pane.setPointerCapture(event.pointerId);
    this.pane.classList.add("grabbed");
    this.pane.addEventListener("pointermove", move);
    this.pane.addEventListener("lostpointercapture", end, { once: true });
    this.pane.focus({ preventScroll: true });
    event.preventDefault();
  }
}
